"""Convolutions by Winograd's minimal filtering: fewer multiplications than there are taps."""
