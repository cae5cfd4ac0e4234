"""Requests that come at the same time, answered by one step."""
