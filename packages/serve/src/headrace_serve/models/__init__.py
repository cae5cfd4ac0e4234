"""What is served: signatures, versions, and where they come from."""
