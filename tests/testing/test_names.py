"""The kit's two names: ``headrace.testing`` is what ``headrace_testing`` brings."""

from __future__ import annotations

import headrace as hr
import headrace.testing
import headrace.testing.fuzz
import headrace.testing.samples
import headrace_testing
import headrace_testing.fuzz
import headrace_testing.samples
from tests.children import run_program, run_python

# The package is installed here, so a finder that finds none of it stands for its absence.
WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "headrace_testing":
            raise ModuleNotFoundError(f"No module named {name!r}", name="headrace_testing")

sys.meta_path.insert(0, Missing())
try:
    from headrace.%s import %s
except ModuleNotFoundError as error:
    print(error, error.name)
"""


def test_the_names_under_headrace_are_those_of_the_package() -> None:
    for alias, module in (
        (headrace.testing, headrace_testing),
        (headrace.testing.fuzz, headrace_testing.fuzz),
        (headrace.testing.samples, headrace_testing.samples),
    ):
        for name in alias.__all__:
            assert getattr(alias, name) is getattr(module, name)
    assert set(headrace.testing.__all__) == set(headrace_testing.__all__)
    assert hr.testing is headrace.testing


def test_the_attribute_needs_no_import() -> None:
    done = run_program("import headrace as hr; print(hr.testing.Sample.__module__)")
    assert done.stdout.strip() == "headrace_testing.sample", done.stderr


def test_without_the_package_the_error_says_how_to_install_it() -> None:
    for module, name in (("testing", "Sample"), ("testing.fuzz", "fuzz")):
        done = run_program(WITHOUT % (module, name))
        assert done.stdout.strip() == (
            "headrace.testing is provided by the package headrace-testing: "
            "pip install headrace-testing headrace.testing"
        ), done.stderr


def test_the_fuzzer_runs_under_its_name_in_headrace() -> None:
    done = run_python("-m", "headrace.testing.fuzz", "--op", "NoSuchOp", check=False)
    assert done.returncode == 2, done.stderr
    assert done.stdout.strip() == "NoSuchOp: no such op"
