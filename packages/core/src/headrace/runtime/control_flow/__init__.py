"""Control flow: how the functions that operations hold run, and loops in few calls."""
