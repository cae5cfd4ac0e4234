"""Programs: regions of a step, compiled for the CPU into one straight-line function each."""
