"""A language model whose embeddings and softmax are on parameter servers."""
