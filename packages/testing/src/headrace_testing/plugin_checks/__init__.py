"""Checks of a whole plugin: that it is in force, and that what it brings does what it says."""
