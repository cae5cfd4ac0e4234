"""Regions: operations of one device that are compiled together, for the shapes that come."""
