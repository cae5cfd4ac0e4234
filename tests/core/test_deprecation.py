"""Deprecated names work, and warn where they are used; those whose time is over are found."""

from __future__ import annotations

import inspect
import sys
import types
import warnings

import pytest

import headrace as hr
from headrace.extend import deprecation
from headrace.extend.deprecation import (
    DEPRECATIONS,
    Deprecation,
    deprecated,
    deprecated_argument,
    deprecated_names,
)
from headrace.version import __version__


@pytest.fixture(autouse=True)
def declared(monkeypatch):
    """A list of deprecations that the test's own go to."""
    own: list[Deprecation] = []
    monkeypatch.setattr("headrace.deprecation.DEPRECATIONS", own)
    return own


def line() -> int:
    return inspect.currentframe().f_back.f_lineno


class TestFunction:
    def test_it_works_and_warns_where_it_is_called(self):
        @deprecated("hr.double", instead="hr.add", since="0.2")
        def double(x, *, times=2):
            """Multiply."""
            return times * x

        message = "^hr.double is deprecated since headrace 0.2 and goes away in 0.4: use hr.add$"
        with pytest.warns(DeprecationWarning, match=message) as caught:
            result = (double(4, times=3), line())
        assert result[0] == 12
        assert [(w.filename, w.lineno) for w in caught] == [(__file__, result[1])]
        assert str(inspect.signature(double)) == "(x, *, times=2)"
        assert double.__doc__ == "Multiply."

    def test_another_name_for_an_op_keeps_its_schema(self):
        old = deprecated("hr.squashed", instead="hr.tanh", since="0.2")(hr.tanh)
        assert old.schema is hr.tanh.schema
        with hr.Graph(), pytest.warns(DeprecationWarning, match="use hr.tanh"):
            assert old(hr.zeros([2])).op.type == "Tanh"
        with hr.Graph(), warnings.catch_warnings():
            warnings.simplefilter("error")
            hr.tanh(hr.zeros([2]))

    def test_a_sentence_says_what_there_is_no_name_for(self):
        @deprecated("hr.gone", instead="write it with hr.scan", since="1.9")
        def gone():
            return None

        with pytest.warns(DeprecationWarning, match=r"goes away in 1\.11: write it with hr\.scan$"):
            gone()


class TestClass:
    def test_it_works_and_warns_where_it_is_made(self):
        class New:
            """A thing."""

            def __init__(self, size, *, name="thing"):
                self.size, self.name = size, name

        old = deprecated("hr.Old", instead="hr.New", since="0.2")(New)
        with pytest.warns(DeprecationWarning, match="hr.Old is deprecated") as caught:
            made, there = old(3, name="a"), line()
        assert [(w.filename, w.lineno) for w in caught] == [(__file__, there)]
        assert isinstance(made, New)
        assert (made.size, made.name, old.__doc__) == (3, "a", "A thing.")
        assert str(inspect.signature(old)) == "(size, *, name='thing')"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            New(3)


class TestArgument:
    @staticmethod
    @deprecated_argument("dim", "axis", since="0.2", package="fancy")
    def total(x, axis=None):
        return x, axis

    def test_it_is_passed_on_under_the_new_name(self):
        with pytest.warns(
            DeprecationWarning, match=r"'dim' of .*total is deprecated since fancy 0\.2.*'axis'"
        ) as caught:
            assert self.total(1, dim=2) == (1, 2)
        assert caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert self.total(1, axis=2) == (1, 2)

    def test_both_names_are_refused(self):
        with pytest.raises(TypeError, match="got both 'dim' and 'axis', which are one argument"):
            self.total(1, axis=2, dim=2)

    def test_the_new_name_must_exist(self):
        with pytest.raises(TypeError, match="total has no parameter 'axes'"):
            deprecated_argument("dim", "axes", since="0.2")(self.total)


class TestNames:
    def test_a_module_gives_what_went_elsewhere(self, monkeypatch):
        module = types.ModuleType("fancy")
        names = {"OLD": ("fancy.ops.NEW", lambda: 7)}
        module.__getattr__ = deprecated_names("fancy", names, since="0.2", package="fancy")
        monkeypatch.setitem(sys.modules, "fancy", module)
        with pytest.warns(
            DeprecationWarning, match=r"fancy\.OLD .* use fancy\.ops\.NEW$"
        ) as caught:
            assert module.OLD == 7
        assert caught[0].filename == __file__
        with pytest.raises(AttributeError, match="module 'fancy' has no attribute 'NOTHING'"):
            _ = module.NOTHING


@pytest.mark.parametrize("since", ["0", "0.2.0", "next", ""])
def test_a_release_has_two_numbers(since):
    with pytest.raises(ValueError, match="expected the first two numbers of a version"):
        deprecated("hr.old", instead="hr.new", since=since)


@pytest.mark.parametrize(
    ("version", "overdue"),
    [("0.2.0", False), ("0.3.9", False), ("0.4.0rc1", True), ("0.4.0", True), ("1.0.0", True)],
)
def test_a_name_works_for_some_releases(version, overdue):
    assert deprecation.RELEASES == 2
    assert Deprecation("hr.old", "hr.new", "0.2").overdue(version) is overdue


def test_each_deprecation_is_listed_once(declared):
    for _ in range(2):
        deprecated("hr.old", instead="hr.new", since="0.2")
    assert declared == [Deprecation("hr.old", "hr.new", "0.2")]


@pytest.mark.needs("autodiff", "backend-cpu", "dist-mpi", "train")
def test_no_deprecated_name_has_outlived_its_time():
    for name in (*hr.__all__, "gradients", "train", "dist"):
        getattr(hr, name)
    ours = [entry for entry in DEPRECATIONS if entry.package == "headrace"]
    overdue = [entry.message for entry in ours if entry.overdue(__version__)]
    assert not overdue, "delete these names, and what they need:\n" + "\n".join(overdue)
