"""The graph: operations, tensors, functions, and the scopes that apply to them."""
