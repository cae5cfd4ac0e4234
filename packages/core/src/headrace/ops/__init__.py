"""The vocabulary: every op's one declaration, by family."""
