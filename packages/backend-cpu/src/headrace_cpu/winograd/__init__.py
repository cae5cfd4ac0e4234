"""Convolutions by Winograd's minimal filtering: few multiplications."""
