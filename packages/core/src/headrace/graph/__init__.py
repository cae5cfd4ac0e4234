"""The graph: operations, tensors, scopes and the documents that hold them."""
