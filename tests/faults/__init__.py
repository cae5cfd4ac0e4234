"""Kills and signals at random instants: what was committed stays, and what ends ends soon.

``python -m tests.faults`` does what ``nox -s faults`` does; the tests beside it do a little of it.
"""
