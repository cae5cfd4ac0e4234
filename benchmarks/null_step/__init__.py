"""A step that computes nothing: workers take parameters from servers, and update them."""
