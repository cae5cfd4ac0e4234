"""Feed-forward networks described as data, and a participant that trains them for each library.

``layers`` has the words of the description, ``tasks`` the networks with their batches, and each
other module builds any of them with its library, from the same NumPy arrays.
"""
