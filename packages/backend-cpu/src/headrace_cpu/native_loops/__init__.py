"""Native loops over whole arrays, written once for all shapes, in place of plain kernels.

They are for operations whose work is no formula per element: orders, scans, sums by segment, sets,
sparse products, words. A native loop computes what the plain kernel of its operation computes, to
the bit, on all threads of the step; where it cannot, the plain kernel does (``node.py``).
"""
