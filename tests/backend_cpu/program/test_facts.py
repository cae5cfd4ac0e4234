"""What an op of another package states of memory and state is honoured in compiled steps."""

from __future__ import annotations

from importlib.metadata import entry_points
from types import SimpleNamespace

import numpy as np
import pytest

import headrace as hr
from headrace.extend import Anything, Floating, KernelTable, Resource, Spec, hookimpl, op
from headrace.plugins import host as host_module
from headrace.plugins.host import PluginHost

TABLE = KernelTable()
KEPT: list[np.ndarray] = []
ONCE = hr.Config(compile_after=0)


@op("MemoryView", view=True)
def view(x: Anything) -> Spec:
    """The same."""
    return x


@op("MemorySame", elementwise=True, aliases=["x"])
def same(x: Floating) -> Spec:
    """The same array."""
    return x


@op("MemoryKeep", stateful=True)
def keep(x: Anything) -> None:
    """Keeps what it gets."""


@op("MemoryLook", stateful=True, keeps_inputs=False)
def look(x: Anything) -> None:
    """Looks at what it gets."""


@op("MemoryDouble", stateful=True)
def double(resource: Resource) -> Spec:
    """Doubles a variable."""
    return resource.content


@TABLE.plain("MemoryView")
def _view(xp, x):
    raise AssertionError("a view takes no time")


@TABLE.plain("MemorySame")
def _same(xp, x):
    return x


@TABLE.stateful("MemoryKeep")
def _keep(ctx, x):
    KEPT.append(x)
    return ()


@TABLE.stateful("MemoryLook")
def _look(ctx, x):
    KEPT.append(x)
    return ()


@TABLE.stateful("MemoryDouble")
def _double(ctx, cell):
    return cell.update(lambda old: old * 2)


class Stranger:
    @hookimpl
    def headrace_register_kernels(self, registry):
        registry.add("cpu", TABLE)


@pytest.fixture(autouse=True)
def stranger(monkeypatch):
    plugin = Stranger()
    named = SimpleNamespace(
        name="stranger", value=Stranger.__module__, dist=None, load=lambda: plugin
    )
    monkeypatch.setattr(host_module, "_HOST", PluginHost([*entry_points(group="headrace"), named]))
    KEPT.clear()


def chain(x, times):
    """Return matrix products one after the other, whose buffers follow each other in one place."""
    for _ in range(times):
        x = hr.matmul(x, x)
    return x


def test_a_view_needs_no_kernel():
    x = hr.placeholder("float32", [4])
    y = hr.exp(view(hr.log(x)))
    with hr.Session(config=ONCE) as session:
        np.testing.assert_allclose(session.run(y, {x: [1.0, 2.0, 3.0, 4.0]}), [1, 2, 3, 4], 1e-6)


def test_memory_that_an_output_may_share_is_kept_while_the_output_lives():
    x = hr.placeholder("float32", [2, 2])
    first = hr.matmul(x, x)
    held = same(first)
    # Were the memory of ``first`` thought to be free, these would write to it.
    later = chain(hr.matmul(x, x + 1.0), 4)
    with hr.control_dependencies([later]):
        both = hr.matmul(held, x)
    given = np.array([[0.5, 0.25], [0.125, 0.5]], np.float32)
    with hr.Session(config=ONCE) as session:
        got = session.run([both, later], {x: given})[0]
    np.testing.assert_allclose(got, given @ given @ given, 1e-5)


def kept(make):
    """Return what a kernel got in two steps, and what it should have got."""
    x = hr.placeholder("float32", [2, 2])
    product = hr.matmul(x, x)
    done = make(product)
    after = chain(product, 3)
    given = [np.full((2, 2), value, np.float32) for value in (0.5, 2.0)]
    with hr.Session(config=ONCE) as session:
        for value in given:
            session.run([done, after], {x: value})
    return KEPT, [value @ value for value in given]


def test_what_may_be_kept_is_copied():
    got, wanted = kept(keep)
    np.testing.assert_array_equal(got, wanted)


def test_what_is_not_kept_is_not_copied():
    got, wanted = kept(look)
    # It looked at memory that the next step used again.
    np.testing.assert_array_equal(got[1], got[0])
    assert not np.array_equal(got[0], wanted[0])


def test_a_variable_is_changed_once_all_have_read_the_old_value():
    v = hr.Variable(np.ones(3, np.float32))
    read = v.read_value()
    uses = [hr.reduce_sum(hr.exp(read) * float(i)) for i in range(3)]
    with hr.control_dependencies([read]):
        new = double(v.handle)
    with hr.Session(config=ONCE) as session:
        session.run(v.initializer)
        first = session.run([*uses, new])
        np.testing.assert_array_equal(first[-1], [2.0, 2.0, 2.0])
        np.testing.assert_allclose(first[1], 3 * np.e, 1e-6)
        assert session.run(read)[0] == 2.0
