"""The samples of core's ops: ``headrace_testing.samples`` of the package headrace-testing."""

from headrace.plugins.package_alias import provided

_samples = provided("headrace_testing.samples", "headrace.testing.samples", "headrace-testing")
__all__ = ["SAMPLES", "WITHOUT_SAMPLES"]
SAMPLES = _samples.SAMPLES
WITHOUT_SAMPLES = _samples.WITHOUT_SAMPLES
