"""How operations become nodes of TensorFlow, a module for each family."""
