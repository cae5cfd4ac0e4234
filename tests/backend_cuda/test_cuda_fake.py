"""T0: the stand-in for CuPy is as strict as the real one, and knows its interface."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from headrace_cpu.kernels.scipy_beside import scipy_module
from headrace_cuda.testing import FakeArray, fake_cupy
from headrace_cuda.testing.module import CALLS
from headrace_cuda.testing.record import describe_cupy, recorded_version

xp = fake_cupy


@pytest.fixture
def array() -> FakeArray:
    return xp.asarray(np.arange(6.0).reshape(2, 3))


MIXES = {
    "operator": lambda a, h: a + h,
    "reflected": lambda a, h: h + a,
    "ufunc": lambda a, h: xp.add(a, h),
    "function": lambda a, h: xp.where(a > 0, a, h),
    "list": lambda a, h: xp.concatenate([a, h]),
    "numpy-ufunc": lambda a, h: np.exp(a),
    "numpy-function": lambda a, h: np.sum(a),
    "conversion": lambda a, h: np.asarray(a),
    "write-host": lambda a, h: a.__setitem__(0, h),
    "write-device": lambda a, h: h.__setitem__(0, a),
}


@pytest.mark.parametrize("mix", MIXES)
def test_arrays_of_both_kinds_do_not_mix(array, mix):
    with pytest.raises(TypeError):
        MIXES[mix](array, np.ones((2, 3)))


def test_scalars_mix_with_arrays(array):
    for scalar in (2, 2.0, np.float64(2)):
        expected = np.arange(6.0).reshape(2, 3) * 2 + 2
        np.testing.assert_array_equal((scalar * array + scalar).get(), expected)


@pytest.mark.parametrize("host", [np.array("x", object), np.ones(2, ml_dtypes.bfloat16)])
def test_dtypes_that_cupy_lacks_are_refused(host):
    with pytest.raises(TypeError, match="Unsupported dtype"):
        xp.asarray(host)


def test_functions_and_parameters_that_cupy_lacks_are_refused(array):
    with pytest.raises(AttributeError, match="cupy has no attribute 'errstate'"):
        _ = xp.errstate
    with pytest.raises(AttributeError, match="ndarray has no attribute 'setflags'"):
        _ = array.setflags
    with pytest.raises(TypeError, match=r"cupy\.max has no parameter initial"):
        xp.max(array, initial=0)
    with pytest.raises(AttributeError, match="cannot be set"):
        array.flags.writeable = False


def test_scipy_beside_it_is_as_strict(array):
    special = scipy_module(xp, "special")
    assert isinstance(special.erf(array), FakeArray)
    with pytest.raises(TypeError, match="a host array among device arrays"):
        special.erf(np.ones(2))
    with pytest.raises(AttributeError, match=r"special\.struve does not exist"):
        _ = special.struve


def test_reductions_yield_arrays(array):
    assert isinstance(xp.sum(array), FakeArray)
    assert isinstance(array.max(), FakeArray)
    assert float(xp.sum(array)) == 15


def test_indices_out_of_range_wrap_around(array):
    rows = xp.asarray(np.array([0, 3, -5]))
    for picked in (array[rows], xp.take(array, rows, axis=0), array.take(rows, axis=0)):
        np.testing.assert_array_equal(picked.get()[:, 0], [0, 3, 3])
    array[rows, xp.asarray(np.array([4, 4, 4]))] = 9
    assert float(array[1, 1]) == 9


def test_integer_errors_pass_silently():
    ones = xp.asarray(np.array([1, 1]))
    ones // 0
    ones ** xp.asarray(np.array([-1, 2]))


def test_scattering_takes_the_dtypes_of_atomic_additions():
    at = xp.asarray(np.array([0, 0, 1]))
    target = xp.zeros((2,), xp.float32)
    xp.add.at(target, at, 1)
    np.testing.assert_array_equal(target.get(), [2, 1])
    with pytest.raises(TypeError, match="scatter_add only supports"):
        xp.add.at(xp.zeros((2,), xp.int64), at, 1)
    with pytest.raises(NotImplementedError, match="cupy_multiply"):
        xp.multiply.at(target, at, 1)


def test_waits_of_the_host_are_counted(array):
    CALLS.clear()
    bool(array[0, 0] > 1), int(array[0, 0]), array.tolist(), array[array > 1]
    assert CALLS["wait"] == 4


def test_host_arrays_reach_the_device_only_by_functions_made_for_it():
    CALLS.clear()
    xp.asarray(np.ones(2)), xp.asarray(xp.ones((2,)))
    assert CALLS["upload"] == 1


@pytest.mark.needs("cupy")
def test_the_record_is_the_installed_cupy():
    import cupy

    from headrace_cuda.testing.record import FILE

    if cupy.__version__ != recorded_version():
        pytest.skip(f"{FILE} records CuPy {recorded_version()}, installed is {cupy.__version__}")
    from importlib.resources import files

    text = files("headrace_cuda.testing").joinpath(FILE).read_text()
    assert describe_cupy() == text.splitlines()
