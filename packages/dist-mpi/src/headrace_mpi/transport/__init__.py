"""Frames between ranks: their bytes, how they travel, and who waits for them."""
