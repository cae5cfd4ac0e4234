"""One package per workload, each with its definition as ``WORKLOAD``.

A workload's package holds one module per participant, named as the peer, with a function
``build(request)``. To add a workload, add a package; to add a peer to a workload, add a module
and an entry.
"""
