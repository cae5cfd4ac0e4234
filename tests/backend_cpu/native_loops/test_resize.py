"""Images resized by native loops, and their gradients: the bits of the plain kernels."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import HeadraceError
from headrace.ops.image import resize_op

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

COMPILED = {"compile_after": 0, "compile_wait": True}
# Images, and the height and width that they get.
SIZES = [((2, 5, 7, 3), (11, 9)), ((3, 16, 12, 1), (5, 4)), ((1, 1, 1, 2), (3, 4)),
         ((2, 9, 9, 20), (9, 17)), ((1, 30, 2, 8), (7, 40)), ((4, 8, 8, 7), (8, 8)),
         ((2, 6, 50, 9), (1, 1)), ((40, 20, 20, 4), (31, 33))]  # fmt: skip
WAYS = [(False, False), (True, False), (False, True)]


def runs(build, arrays, **config):
    with hr.Graph().as_default():
        holders = [hr.placeholder(a.dtype, a.shape) for a in arrays]
        found = build(*holders)
        with hr.Session(config=hr.Config(**config)) as session:
            for _ in range(2):
                values = session.run(found, dict(zip(holders, arrays, strict=True)))
    return values


def check(build, *arrays):
    expected = runs(build, arrays, executor="plain")
    for threads in (1, 2, 3):
        found = runs(build, arrays, threads=threads, **COMPILED)
        for one, other in zip(expected, found, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            # Any NaN is as good as another one.
            np.testing.assert_array_equal(one, other)
            whole = ~np.isnan(one.astype("float64"))
            assert one[whole].tobytes() == other[whole].tobytes()


@pytest.mark.parametrize("odd", [False, True], ids=["numbers", "odd"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("way", WAYS, ids=["", "corners", "centers"])
@pytest.mark.parametrize(("shape", "size"), SIZES)
def test_resized_and_the_gradient(shape, size, way, dtype, odd):
    rng = np.random.default_rng(shape[1])
    images = rng.normal(size=shape).astype(dtype)
    grad = rng.normal(size=(shape[0], *size, shape[3])).astype(dtype)
    if odd:
        for array in (images, grad):
            places = rng.random(array.shape) < 0.05
            array[places] = rng.choice([np.nan, np.inf, -np.inf, -0.0], int(places.sum()))

    def build(x, g):
        corners, centers = way
        y = resize_op(x, list(size), "bilinear", corners, centers)
        return [y, *hr.gradients([y], [x], [g])]

    check(build, images, grad)


@pytest.mark.parametrize("seed", range(20))
def test_random_sizes(seed):
    rng = np.random.default_rng(seed)
    count, height, width, channels, down, across = (int(n) for n in rng.integers(1, 40, 6))
    images = rng.normal(size=(count, height, width, channels)).astype(np.float32)

    def build(x):
        y = hr.image.resize_bilinear(x, [down, across], align_corners=bool(seed % 2))
        return [y, *hr.gradients([y * y], [x])]

    check(build, images)


def test_other_methods_and_whole_numbers_are_as_ever():
    images = np.arange(2 * 5 * 6 * 3).reshape(2, 5, 6, 3)
    for method in ("nearest", "bicubic", "area", "bilinear"):
        for dtype in ("float32", "uint8", "int32"):
            kind = getattr(hr.image.ResizeMethod, _NAMES[method])
            check(
                lambda x, kind=kind: [hr.image.resize_images(x, [9, 4], method=kind)],
                images.astype(dtype),
            )


_NAMES = {
    "nearest": "NEAREST_NEIGHBOR",
    "bicubic": "BICUBIC",
    "area": "AREA",
    "bilinear": "BILINEAR",
}


def test_no_images_and_sizes_that_are_computed():
    check(lambda x: [hr.image.resize_bilinear(x, [4, 5])], np.zeros((0, 3, 3, 2), np.float32))
    images, size = np.ones((2, 3, 3, 2), np.float32), np.array([4, 5], np.int32)
    check(lambda x, s: [hr.image.resize_bilinear(x, s)], images, size)
    with pytest.raises(HeadraceError, match="must be a positive height and width"):
        runs(lambda x, s: [hr.image.resize_bilinear(x, s)], [images, np.int32([4, 0])], **COMPILED)
