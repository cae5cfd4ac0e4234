"""T0: what an op of another package states is honoured on a device that pretends to be a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points
from types import SimpleNamespace

import numpy as np
import pytest

import headrace as hr
from headrace.errors import DeterminismError
from headrace.extend import Anything, Floating, Index, KernelTable, Spec, as_shape, hookimpl, op
from headrace.plugins import host as host_module
from headrace.plugins.host import PluginHost

TABLE = KernelTable()
SEEN: dict[str, object] = {}


@op("HostPlain", host_inputs=["shape", "more"])
def plain(x: Floating, shape: Index, more: Sequence[Index], tail: Index | None = None) -> Spec:
    """Notes what its kernel gets."""
    return x.with_shape(as_shape(shape))


@op("HostState", effects="reads", host_inputs=["count"])
def state(x: Floating, count: Index) -> Spec:
    """Notes what its kernel gets."""
    return x


@op("HostSpecial", host_inputs=["count"])
def special(x: Floating, count: Index) -> Spec:
    """Notes what its kernel gets."""
    return x


@op("HostWait", stateful=True, blocking=True, host_inputs=["count"])
def wait(x: Anything, count: Index) -> Spec:
    """Notes what its kernel gets."""
    return x


@op("HostHeap", accumulates=True)
def heap(x: Floating) -> Spec:
    """Adds up."""
    return x.with_shape([])


@TABLE.plain("HostPlain")
def _plain(xp, x, shape, more, tail):
    SEEN["plain"] = (type(x), [type(v) for v in (shape, *more)], tail)
    return xp.broadcast_to(x, tuple(shape)) + x.dtype.type(sum(more))


@TABLE.stateful("HostState")
def _state(ctx, x, count):
    SEEN["state"] = (type(x), type(count))
    return x * x.dtype.type(count)


@TABLE.specialized("HostSpecial")
def _special(node):
    def call(x, count):
        SEEN["special"] = (type(x), type(count))
        return x * x.dtype.type(count)

    return call


@TABLE.blocking("HostWait")
def _wait(ctx, step, done, x, count):
    SEEN["wait"] = (type(x), type(count))
    done([x * x.dtype.type(count)])


@TABLE.plain("HostHeap")
def _heap(xp, x):
    return x.sum()


class Stranger:
    @hookimpl
    def headrace_register_kernels(self, registry):
        registry.add("cuda", TABLE)
        registry.add("cpu", TABLE)


@pytest.fixture(autouse=True)
def gpus(monkeypatch):
    """Two pretended GPUs, for which another package has kernels."""
    stranger = Stranger()
    named = SimpleNamespace(name="stranger", value="stranger", dist=None, load=lambda: stranger)
    pretended = SimpleNamespace(name="cuda", value="pretended", dist=None, load=_pretended)
    real = [entry for entry in entry_points(group="headrace") if entry.name != "cuda"]
    monkeypatch.setattr(host_module, "_HOST", PluginHost([*real, pretended, named]))
    SEEN.clear()


def _pretended():
    from headrace_cuda.testing import plugin

    return plugin


def on_host(kind):
    return issubclass(kind, np.ndarray | np.generic)


@pytest.mark.parametrize("fed", [True, False])
def test_host_inputs_of_a_plain_kernel_are_arrays_of_the_host(fed):
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.placeholder("float32", [])
        shape = hr.placeholder("int32", [1]) if fed else hr.constant([3])
        y = plain(x, shape, [1, hr.reduce_sum(shape)])
        got = session.run(y, {x: 2.0, **({shape: [3]} if fed else {})})
    np.testing.assert_array_equal(got, [6.0, 6.0, 6.0])
    array, hosts, tail = SEEN["plain"]
    assert not on_host(array)
    assert all(map(on_host, hosts))
    assert tail is None


def test_an_input_that_is_not_wanted_there_stays_on_the_device():
    with hr.Graph().as_default(), hr.Session() as session:
        tail = hr.placeholder("int32", [1])
        session.run(plain(1.0, [2], [1], tail), {tail: [7]})
    assert not on_host(type(SEEN["plain"][2]))


@pytest.mark.parametrize(
    ("make", "key"),
    [(state, "state"), (special, "special"), (wait, "wait")],
    ids=lambda v: str(v)[:9],
)
def test_kernels_of_every_style_get_them(make, key):
    with hr.Graph().as_default(), hr.Session() as session:
        x, count = hr.placeholder("float32", [2]), hr.placeholder("int32", [])
        got = session.run(make(x, count), {x: [1.0, 2.0], count: 3})
    np.testing.assert_array_equal(got, [3.0, 6.0])
    array, host = SEEN[key]
    assert not on_host(array)
    assert on_host(host)


def test_on_the_cpu_they_are_what_they_always_were():
    with hr.Graph().as_default(), hr.Session() as session, hr.device("cpu:0"):
        x = hr.placeholder("float32", [2])
        np.testing.assert_array_equal(session.run(special(x, 3), {x: [1.0, 2.0]}), [3.0, 6.0])
    assert all(map(on_host, SEEN["special"]))


def test_a_sum_of_another_package_is_refused_where_its_order_is_left_to_chance():
    config = hr.Config(deterministic=True)
    with hr.Graph().as_default(), hr.Session(config=config) as session:
        x = hr.placeholder("float32", [2])
        far = heap(x, name="far")
        with hr.device("cpu:0"):
            near = heap(x, name="near")
        assert session.run(near, {x: [1.0, 2.0]}) == 3.0
        with pytest.raises(DeterminismError, match="HostHeap 'far': it adds up in an order"):
            session.run(far, {x: [1.0, 2.0]})
