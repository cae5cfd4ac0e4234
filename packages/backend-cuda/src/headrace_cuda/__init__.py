"""The cuda devices of Headrace."""
