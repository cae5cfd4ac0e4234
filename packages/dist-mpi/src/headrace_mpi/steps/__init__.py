"""Steps over ranks: the client's side, the worker's, and the values that travel between them."""
