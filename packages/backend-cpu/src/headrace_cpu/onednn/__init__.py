"""Convolutions, pooling and products by oneDNN, where its library is installed."""
