"""Finding the library, what it answers, and what happens without it."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.diagnosis import diagnose
from headrace_cpu.onednn import library
from headrace_cpu.onednn.memory import Descriptor, Layout, permuted
from headrace_cpu.onednn.primitive import prepare
from headrace_cpu.program import matching


@pytest.fixture
def looked_for(monkeypatch):
    """Look for the library anew, and forget what was found."""
    library._find.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    library._find.cache_clear()


needs_library = pytest.mark.skipif(library.load() is None, reason="oneDNN is not installed")


def test_a_file_that_is_no_library_is_reported(looked_for, tmp_path):
    path = tmp_path / "libdnnl.so"
    path.write_bytes(b"nothing")
    looked_for.setenv("HEADRACE_ONEDNN", str(path))
    with pytest.warns(RuntimeWarning, match="cannot be used"):
        assert library.load() is None
    facts = diagnose()
    assert "cannot be used" in facts["onednn"]
    (problem,) = [p for p in facts["problems"] if "oneDNN" in p[0]]
    assert "headrace-backend-cpu[onednn]" in problem[1]


def test_another_library_is_refused(looked_for):
    looked_for.setenv("HEADRACE_ONEDNN", "libc.so.6")
    with pytest.warns(RuntimeWarning, match="cannot be used"):
        assert library.load() is None
    assert "cannot be used" in library.find().reason


def test_its_absence_is_no_problem(looked_for):
    looked_for.setattr(library, "_path", lambda: None)
    facts = diagnose()
    assert facts["onednn"] == "not installed"
    assert not [p for p in facts["problems"] if "oneDNN" in p[0]]


def test_steps_run_without_it(looked_for):
    looked_for.setattr(library, "_path", lambda: None)
    x = np.ones((1, 6, 6, 3), np.float32)
    y = hr.nn.conv2d(x, np.ones((3, 3, 3, 4), np.float32), 1, "VALID")
    with hr.Session() as session:
        assert (session.run(y) == 27).all()


@needs_library
def test_nothing_is_matched_where_it_is_not_wanted(harness, monkeypatch):
    y = hr.nn.conv2d(hr.placeholder("float32", [1, 6, 6, 3]), np.ones((3, 3, 3, 4), np.float32))
    assert harness.matched([y])
    assert not harness.matched([y], onednn=False)


def test_it_is_not_loaded_for_nothing(harness, monkeypatch):
    def load():
        raise AssertionError("loaded")

    monkeypatch.setattr(matching, "load", load)
    a = hr.placeholder("float32", [4, 4])
    assert not harness.matched([hr.matmul(a, a) + 1.0])


@needs_library
def test_the_doctor_says_which_version_there_is():
    assert diagnose()["onednn"].startswith("3.")


@needs_library
def test_errors_name_the_call():
    found = library.load()
    with pytest.raises(library.OnednnError, match="dnnl_memory_desc_create_with_tag failed: inva"):
        Descriptor.of(found, Layout((-5, 2)))


@needs_library
def test_what_cannot_be_made_is_none():
    found = library.load()

    def make(attributes):
        raise library.OnednnError("dnnl_something", library.UNIMPLEMENTED)

    assert prepare(found, 1, "a key", make, (library.SRC,)) is None


@needs_library
def test_equal_primitives_are_one(harness):
    a, b = hr.placeholder("float32", [64, 100]), hr.placeholder("float32", [100, 50])
    one, other = harness.matched([hr.matmul(a, b), hr.matmul(a, b)])
    assert one.primitive is other.primitive


@needs_library
def test_layouts_are_compared_by_what_they_mean():
    found = library.load()
    images = permuted((2, 5, 6, 3), (0, 3, 1, 2))
    assert images == Layout((2, 3, 5, 6), (90, 1, 18, 3))
    assert Descriptor.of(found, images) == Descriptor.of(found, images)
    assert Descriptor.of(found, images) != Descriptor.of(found, permuted((2, 3, 5, 6), range(4)))
    assert Descriptor.of(found, images).size == 2 * 3 * 5 * 6 * 4
