"""The rows of the table of translations, by families of ops."""
