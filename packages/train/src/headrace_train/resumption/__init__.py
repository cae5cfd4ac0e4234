"""What lets a program that ended go on where it was: state beside the variables, locks, signals."""
