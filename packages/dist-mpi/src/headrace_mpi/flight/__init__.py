"""The flight record: the last frames of a rank, for when something goes wrong."""
