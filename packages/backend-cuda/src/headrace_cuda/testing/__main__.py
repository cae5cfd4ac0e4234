"""``python -m headrace_cuda.testing`` records the interface of the installed CuPy."""

from headrace_cuda.testing.record import main

main()
