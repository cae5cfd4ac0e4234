"""Loops run at one go: all calls of many rounds by one call of the machine."""
