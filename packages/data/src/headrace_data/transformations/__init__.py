"""Transformations: what makes data sets of data sets, a module each.

A module has the function that adds the transformation to a graph, and the class of its streams.
"""
