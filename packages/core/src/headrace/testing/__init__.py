"""The conformance kit: tables of op samples, and the checks that follow from them.

A plugin's author writes rows, and gets for each of them forward parity with a float64 oracle for
every dtype, agreement of inferred and produced shapes, scalar, empty, strided, read-only,
constant and folded inputs, a round trip through a graph document, and first and second
derivatives against central differences::

    from headrace.testing import Sample, conformance, uniform

    test_conformance = conformance([
        Sample("Cube", [uniform((3, 4), -2, 2)], oracle=lambda x: x**3),
    ])

Only ``conformance`` needs pytest (``pip install headrace-core[testing]``); ``cases`` returns the
same checks as plain objects.
"""

from headrace.testing.cases import Case as Case
from headrace.testing.cases import cases as cases
from headrace.testing.cases import conformance as conformance
from headrace.testing.failure import ConformanceError as ConformanceError
from headrace.testing.failure import SkipCheck as SkipCheck
from headrace.testing.inputs import Input as Input
from headrace.testing.inputs import array as array
from headrace.testing.inputs import booleans as booleans
from headrace.testing.inputs import distinct as distinct
from headrace.testing.inputs import integers as integers
from headrace.testing.inputs import strings as strings
from headrace.testing.inputs import uniform as uniform
from headrace.testing.inputs import whole as whole
from headrace.testing.sample import Reject as Reject
from headrace.testing.sample import Sample as Sample

__all__ = [
    "Case",
    "ConformanceError",
    "Input",
    "Reject",
    "Sample",
    "SkipCheck",
    "array",
    "booleans",
    "cases",
    "conformance",
    "distinct",
    "integers",
    "strings",
    "uniform",
    "whole",
]
