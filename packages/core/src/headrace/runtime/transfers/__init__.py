"""Transfers: where values meet that one device sends and another one receives."""
