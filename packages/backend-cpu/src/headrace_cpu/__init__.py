"""The cpu device of Headrace."""
