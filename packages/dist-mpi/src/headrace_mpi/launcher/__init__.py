"""``python -m headrace run``: a program on several ranks, started anew where a rank is lost."""
