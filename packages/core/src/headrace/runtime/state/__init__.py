"""State: containers of variables and resources, and values that no array holds."""
