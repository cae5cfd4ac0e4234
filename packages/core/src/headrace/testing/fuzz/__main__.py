"""``python -m headrace.testing.fuzz``: the command of the package headrace-testing."""

import runpy

runpy.run_module("headrace_testing.fuzz", run_name="__main__")
