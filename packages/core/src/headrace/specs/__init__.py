"""What programs state of values: dtype and shape of tensors, and of what is made of tensors."""
