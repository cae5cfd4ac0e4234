"""The checks that the harness derives from a row."""
