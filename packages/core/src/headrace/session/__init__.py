"""Sessions: running parts of a graph, with values fed in and fetched out."""
