"""Long runs: many steps and many sessions must not make a process grow."""
