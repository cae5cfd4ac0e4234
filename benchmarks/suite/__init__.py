"""The suite: many small programs of many kinds, to see that speed is not that of a few networks.

A case (``case.py``) is one program with its numbers, written once for the API that Headrace and
TensorFlow share, once for PyTorch and once for JAX. ``cases/`` has them by kind. The modules named
as the peers run any case; a process runs all cases of its peer, one after the other.
"""
