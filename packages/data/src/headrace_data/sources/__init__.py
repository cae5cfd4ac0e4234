"""Where elements come from: tensors, Python generators, files."""
