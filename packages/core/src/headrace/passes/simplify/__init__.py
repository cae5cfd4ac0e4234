"""Simplifying a step: algebraic rewrites, in the table ``RULES``, applied until none is left."""
