"""The fuzzer: random calls of ops, each of which must be right or refused with our own error.

Ranks, empty and huge dimensions, negative and extreme integers, NaN and infinities, dtypes that
are not taken: whatever an op is called with, it yields a result of the dtype and shape that its
rule states, the same whether inputs are constants or fed and whether the step is optimized or
not, or it refuses with a ``HeadraceError``. Anything else is forbidden: another exception, an
error that NumPy raised because the kernel did not check, memory taken for results that are then
refused, a crash, a hang, an input changed in place.

``python -m headrace.testing.fuzz`` calls the ops of core. A package with ops of its own makes
targets of them::

    from headrace.extend.ops import OPS
    from headrace.testing.fuzz import fuzz, op_target, summary

    report = fuzz({"Cube": op_target(OPS["Cube"], SAMPLES)}, calls=2000)
    assert not report.forbidden, summary(report, {})
"""

from headrace_testing.fuzz.campaign import Failure as Failure
from headrace_testing.fuzz.campaign import Report as Report
from headrace_testing.fuzz.campaign import fuzz as fuzz
from headrace_testing.fuzz.report import summary as summary
from headrace_testing.fuzz.targets import Target as Target
from headrace_testing.fuzz.targets import core_targets as core_targets
from headrace_testing.fuzz.targets import function_target as function_target
from headrace_testing.fuzz.targets import op_target as op_target

__all__ = [
    "Failure",
    "Report",
    "Target",
    "core_targets",
    "function_target",
    "fuzz",
    "op_target",
    "summary",
]
