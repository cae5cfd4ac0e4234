"""What libraries use of TensorFlow that was never public, made of Headrace."""
