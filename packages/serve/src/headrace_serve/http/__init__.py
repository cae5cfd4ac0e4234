"""HTTP: the ASGI application, and a server around it."""
