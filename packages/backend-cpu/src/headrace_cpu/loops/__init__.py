"""Loops of which many iterations run by one call of a native driver."""
