"""Campaigns of hostile input: what strangers may hand to Headrace, in great numbers.

``python -m tests.hostile`` runs them all (``nox -s hostile``); ``test_hostile.py`` runs a few cases
of each.
"""
