"""Checkpoints in TensorFlow's second format ("V2"): read bit for bit, and written.

A bundle called ``model`` is the file ``model.index``, which says where each tensor lies, and the
files ``model.data-00000-of-00003``, ..., which hold the bytes of the tensors. ``reader`` and
``writer`` need Protocol Buffers: they are imported when a bundle is read or written.
"""
