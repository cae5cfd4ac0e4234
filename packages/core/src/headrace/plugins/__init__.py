"""The plugin host: what other packages add, and how it is found."""
