"""What kernels of other packages get, and what becomes of what they return."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import PluginError
from headrace.extend import KernelTable, ListValue
from headrace.plugins.kernel_checks import Guard, is_foreign, read_only
from headrace.plugins.ownership import Provider
from headrace.runtime.state.tensor_list import Swapped

PROVIDER = Provider("fancy", "pack_fancy", "pack-fancy 1.0")


def guard(function, *, to_host=None, op=None):
    """Return the guarded call of ``Neg`` with a kernel ``f(x)``."""
    table = KernelTable()
    kernel = table.plain("Neg")(lambda xp, x: function(x))
    (made,) = table
    assert made.function is kernel
    x = hr.placeholder(hr.float32, [None])
    return Guard(op or hr.negative(x).op, made, PROVIDER, function, to_host)


class Elsewhere:
    """An array of another module than NumPy, which cannot be made read-only."""

    def __init__(self, values):
        self.values = np.array(values, np.float32)
        self.dtype, self.shape = self.values.dtype, self.values.shape


def test_arrays_are_read_only_and_others_stay():
    array = np.ones(3, np.float32)
    seen = read_only(array)
    assert not seen.flags.writeable
    assert array.flags.writeable
    assert np.shares_memory(seen, array)
    swapped = Swapped(array)
    seen = read_only(ListValue([array, None, swapped, ListValue([array])]))
    assert not seen.items[0].flags.writeable
    assert seen.items[1:3] == (None, swapped)
    assert not seen.items[3].items[0].flags.writeable
    assert read_only("handle") == "handle"


def test_result_of_nobody_else_is_handed_on():
    made = []

    def fresh(x):
        result = -x
        made.append(id(result))
        return result

    call = guard(fresh)
    for _ in range(3):
        found = call(np.ones(3, np.float32))
        assert id(found) == made[-1]


KEPT = np.zeros(3, np.float32)


@pytest.mark.parametrize(
    "kernel",
    [
        lambda x: x,
        lambda x: x[:],
        lambda x: KEPT,
        lambda x: KEPT[::1],
        lambda x: [KEPT],
        lambda x: np.frombuffer(bytearray(12), np.float32),
    ],
    ids=["input", "view of input", "kept", "view of kept", "kept in a list", "other memory"],
)
def test_result_that_somebody_holds_is_copied(kernel):
    given = np.ones(3, np.float32)
    found = guard(kernel)(given)
    found[:] = 7
    assert given.tolist() == [1, 1, 1]
    assert KEPT.tolist() == [0, 0, 0]


def test_only_the_first_result_is_checked():
    answers = [np.zeros(3, np.float32), np.zeros(3, np.float64)]
    call = guard(lambda x: answers.pop(0))
    call(np.ones(3, np.float32))
    assert call(np.ones(3, np.float32)).dtype == np.float64


def test_a_refused_result_is_checked_again():
    call = guard(lambda x: x.astype(np.float64))
    for _ in range(2):
        with pytest.raises(PluginError, match=r"returned float64\[3\], and Neg declares float32"):
            call(np.ones(3, np.float32))


def test_the_shape_follows_from_the_inputs_of_the_run():
    call = guard(lambda x: np.zeros(4, np.float32))
    with pytest.raises(PluginError, match=r"returned float32\[4\], and Neg declares float32\[3\]"):
        call(np.ones(3, np.float32))


def test_arrays_that_cannot_be_made_read_only_are_compared():
    def writes(x):
        x.values[0] = 9
        return Elsewhere(-x.values)

    call = guard(writes, to_host=lambda array: array.values)
    with pytest.raises(
        PluginError, match=r"the kernel of plugin 'fancy' at .* changed its input 0"
    ):
        call(Elsewhere([1, 2]))
    right = guard(lambda x: Elsewhere(-x.values), to_host=lambda array: array.values)
    assert right(Elsewhere([1, 2])).values.tolist() == [-1, -2]


def test_errors_say_whose_kernel_raised_them():
    with pytest.raises(ZeroDivisionError) as caught:
        guard(lambda x: 1 / 0)(np.ones(3, np.float32))
    (note,) = caught.value.__notes__
    assert "raised by the kernel of plugin 'fancy' at" in note
    assert "its inputs are read-only" in note


def test_our_own_kernels_are_not_guarded():
    table = KernelTable()
    table.plain("Neg")(lambda xp, x: -x)
    (foreign,) = table
    assert is_foreign(foreign)

    def own(xp, x):
        return -x

    own.__module__ = "headrace_cpu.kernels.elementwise"
    table.plain("Neg")(own)
    assert [is_foreign(kernel) for kernel in table] == [True, False]
