"""The functions that resize, crop and turn images."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    DTypeError,
    ExecutionError,
    InvalidArgumentError,
    ShapeError,
)
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")


def draw(*shape):
    return np.random.default_rng([3, *shape]).random(shape).astype(np.float32)


IMAGE, BATCH = draw(4, 5, 3), draw(2, 4, 5, 3)
image = hr.image


def padded(x, top, bottom, left, right):
    return np.pad(x, [(0, 0)] * (x.ndim - 3) + [(top, bottom), (left, right), (0, 0)])


# Functions of one image or of several.
BOTH = {
    "left right": (image.flip_left_right, lambda x: x[..., ::-1, :]),
    "up down": (image.flip_up_down, lambda x: x[..., ::-1, :, :]),
    "transpose": (image.transpose_image, lambda x: np.swapaxes(x, -3, -2)),
    "transpose alias": (image.transpose, lambda x: np.swapaxes(x, -3, -2)),
    "turn": (image.rot90, lambda x: np.rot90(x, 1, (-3, -2))),
    "turn twice": (lambda x: image.rot90(x, k=6), lambda x: np.rot90(x, 2, (-3, -2))),
    "turn back": (lambda x: image.rot90(x, -1), lambda x: np.rot90(x, 3, (-3, -2))),
    "turn not": (lambda x: image.rot90(x, 4), lambda x: x),
    "middle": (lambda x: image.central_crop(x, 0.5), lambda x: x[..., 1:3, 1:4, :]),
    "all": (lambda x: image.central_crop(x, 1.0), lambda x: x),
    "crop": (
        lambda x: image.crop_to_bounding_box(x, 1, 2, 2, 3),
        lambda x: x[..., 1:3, 2:5, :],
    ),
    "pad": (
        lambda x: image.pad_to_bounding_box(x, 1, 2, 7, 8),
        lambda x: padded(x, 1, 2, 2, 1),
    ),
    "crop or pad": (
        lambda x: image.resize_image_with_crop_or_pad(x, 7, 2),
        lambda x: padded(x[..., 1:3, :], 1, 2, 0, 0),
    ),
    "pad or crop": (
        lambda x: image.resize_with_crop_or_pad(x, 3, 8),
        lambda x: padded(x[..., :3, :, :], 0, 0, 1, 2),
    ),
}


@pytest.mark.parametrize("x", [IMAGE, BATCH], ids=["one", "several"])
@pytest.mark.parametrize("name", BOTH)
def test_one_image_or_several(name, x):
    build, expected = BOTH[name]
    y = build(x)
    np.testing.assert_array_equal(run(y), expected(x))
    assert y.shape.known == expected(x).shape
    # The same where sizes are known in a step only.
    unknown = hr.placeholder(hr.float32, [None] * x.ndim)
    np.testing.assert_array_equal(run(build(unknown), {unknown: x}), expected(x))


def test_flips_take_images_of_any_rank():
    unknown = hr.placeholder(hr.float32)
    flipped = [image.flip_left_right(unknown), image.flip_up_down(unknown)]
    for x in (IMAGE, BATCH):
        left, up = run(flipped, {unknown: x})
        np.testing.assert_array_equal(left, x[..., ::-1, :])
        np.testing.assert_array_equal(up, x[..., ::-1, :, :])


def test_what_has_an_unknown_rank_is_one_image():
    unknown = hr.placeholder(hr.float32)
    turned, cropped = image.rot90(unknown), image.crop_to_bounding_box(unknown, 1, 2, 2, 3)
    values = run([turned, cropped], {unknown: IMAGE})
    np.testing.assert_array_equal(values[0], np.rot90(IMAGE))
    np.testing.assert_array_equal(values[1], IMAGE[1:3, 2:5])
    with pytest.raises(ExecutionError, match="EnsureShape"):
        run(turned, {unknown: BATCH})
    colored = run(image.grayscale_to_rgb(unknown), {unknown: BATCH[..., :1]})
    np.testing.assert_array_equal(colored, np.repeat(BATCH[..., :1], 3, -1))


def test_random_flips_flip_each_image_or_not():
    x = draw(40, 2, 2, 1)
    for build, flip in (
        (image.random_flip_left_right, x[:, :, ::-1]),
        (image.random_flip_up_down, x[:, ::-1]),
    ):
        y = run(build(x, seed=5))
        flipped = (y == flip).all((1, 2, 3))
        assert (flipped | (y == x).all((1, 2, 3))).all()
        assert 5 < flipped.sum() < 35
        one = run(build(x[0], seed=1))
        assert (one == x[0]).all() or (one == flip[0]).all()


def test_random_crops_are_parts():
    x = np.arange(48).reshape(6, 8)
    for function in (hr.random_crop, image.random_crop):
        y = function(x, [3, 2], seed=4)
        assert y.shape.known == (3, 2)
        value = run(y)
        top, left = divmod(int(value[0, 0]), 8)
        np.testing.assert_array_equal(value, x[top : top + 3, left : left + 2])


RESIZED = {
    "bilinear": (image.resize_bilinear, [[0, 1, 2, 2]], {}),
    "bilinear corners": (
        image.resize_bilinear,
        [[0, 2 / 3, 4 / 3, 2]],
        {"align_corners": True},
    ),
    "bilinear centers": (
        image.resize_bilinear,
        [[0, 0.5, 1.5, 2]],
        {"half_pixel_centers": True},
    ),
    "nearest": (image.resize_nearest_neighbor, [[0, 0, 2, 2]], {}),
    "nearest corners": (image.resize_nearest_neighbor, [[0, 0, 2, 2]], {"align_corners": True}),
    "area": (image.resize_area, [[0, 0, 2, 2]], {}),
    "bicubic": (image.resize_bicubic, [[0, 1, 2, 2.1875]], {}),
    "bicubic centers": (
        image.resize_bicubic,
        [[-3 / 17, 29 / 70, 111 / 70, 37 / 17]],
        {"half_pixel_centers": True},
    ),
}


@pytest.mark.parametrize("name", RESIZED)
def test_resizing_a_line_of_two_pixels(name):
    build, expected, options = RESIZED[name]
    x = np.array([0.0, 2.0], np.float32).reshape(1, 1, 2, 1)
    y = build(x, [1, 4], **options)
    assert y.shape.known == (1, 1, 4, 1)
    np.testing.assert_allclose(run(y)[0, ..., 0], expected, rtol=1e-5)


@pytest.mark.parametrize("method", range(4))
def test_resize_images(method):
    single = [
        image.resize_bilinear,
        image.resize_nearest_neighbor,
        image.resize_bicubic,
        image.resize_area,
    ][method]
    expected = run(single(BATCH, [3, 7]))
    for y in (
        image.resize_images(BATCH, [3, 7], method),
        image.resize(BATCH, hr.constant([3, 7]), method=method),
        image.resize(BATCH, (3, 7), ("bilinear", "nearest", "bicubic", "area")[method]),
    ):
        np.testing.assert_array_equal(run(y), expected)
    one = image.resize_images(BATCH[0], [3, 7], method=method)
    assert one.shape.known == (3, 7, 3)
    np.testing.assert_array_equal(run(one), expected[0])


def test_dtypes_of_resizing():
    pixels = (BATCH * 255).astype(np.uint8)
    assert image.resize_images(pixels, [3, 3]).dtype == hr.float32
    assert (
        image.resize_images(pixels, [3, 3], image.ResizeMethod.NEAREST_NEIGHBOR).dtype == hr.uint8
    )
    assert image.resize_images(pixels, [4, 5]).dtype == hr.uint8
    assert image.resize_bicubic(pixels.astype(np.float64), [3, 3]).dtype == hr.float32


def test_the_aspect_ratio_can_be_kept():
    y = image.resize_images(BATCH, [8, 8], preserve_aspect_ratio=True)
    assert y.shape.known == (2, 6, 8, 3)
    unknown = hr.placeholder(hr.float32, [None, None, None, 3])
    z = image.resize_images(unknown, [8, 8], preserve_aspect_ratio=True)
    np.testing.assert_array_equal(run(z, {unknown: BATCH}), run(y))
    padding = run(image.resize_image_with_pad(BATCH, 8, 8))
    np.testing.assert_array_equal(padding[:, :6], run(y))
    assert not padding[:, 6:].any()
    for size in ((8, 8), (4, 12), (3, 3), (7, 2)):
        kept = image.resize_image_with_pad(unknown, *size)
        assert kept.shape.as_list() == [None, *size, 3]
        expected = run(image.resize_image_with_pad(BATCH, *size))
        np.testing.assert_array_equal(run(kept, {unknown: BATCH}), expected)


def test_the_size_to_fit_may_be_fed():
    size = hr.placeholder(hr.int32, None)
    kept = image.resize_image_with_pad(BATCH, size, 4)
    for height in (2, 8):
        expected = run(image.resize_image_with_pad(BATCH, height, 4))
        np.testing.assert_array_equal(run(kept, {size: height}), expected)
    for wrong in (0, -1):
        with pytest.raises(InvalidArgumentError, match="new size must be positive"):
            run(kept, {size: wrong})
    for wrong in (0, 1 << 31):
        with pytest.raises(ShapeError, match=r"must be positive, got .* for target_width"):
            image.resize_image_with_pad(BATCH, 2, wrong)
    with pytest.raises(ShapeError, match="target_height must be an integer"):
        image.resize_image_with_pad(BATCH, 2.5, 2)
    with pytest.raises(ShapeError, match="too large"):
        image.resize_image_with_pad(BATCH, 1 << 30, 1 << 30)


def test_crops_are_resized():
    boxes = [[0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.0]]
    x = BATCH[:, :3, :3]
    y = image.crop_and_resize(x, boxes, [0, 1, 0], [3, 3], extrapolation_value=-1.0)
    assert y.shape.known == (3, 3, 3, 3)
    value = run(y)
    np.testing.assert_allclose(value[0], x[0], rtol=1e-6)
    np.testing.assert_allclose(value[1], x[1, ::-1, ::-1], rtol=1e-6)
    np.testing.assert_allclose(value[2, 1], np.tile(x[0, 2, :1], (3, 1)), rtol=1e-6)
    assert (value[2, 2] == -1).all()
    center = run(image.crop_and_resize(x, boxes[:1], box_indices=[1], crop_size=[1, 1]))
    np.testing.assert_allclose(center[0, 0, 0], x[1, 1, 1], rtol=1e-6)
    nearest = run(image.crop_and_resize(x, boxes[:1], [1], [5, 5], method="nearest"))
    np.testing.assert_array_equal(nearest[0, 0, [0, 1, 3, 4]], x[1, 0, [0, 1, 2, 2]])


def test_gradients_of_crops():
    x = hr.constant(draw(1, 4, 4, 2))
    boxes = hr.constant([[0.1, 0.2, 0.8, 0.7]])
    weights = hr.constant(draw(1, 3, 2, 2))

    def loss(b):
        return hr.reduce_sum(image.crop_and_resize(x, b, [0], [3, 2]) * weights)

    to_x, to_boxes = run(hr.gradients(loss(boxes), [x, boxes]))
    np.testing.assert_allclose(to_x.sum(), run(hr.reduce_sum(weights)), rtol=1e-5)
    step = 1e-2
    for k in range(4):
        shift = hr.constant(step * np.eye(4, dtype=np.float32)[k : k + 1])
        ahead, behind = run([loss(boxes + shift), loss(boxes - shift)])
        np.testing.assert_allclose(to_boxes[0, k], (ahead - behind) / (2 * step), rtol=2e-2)


def test_glimpses():
    x = np.arange(70, dtype=np.float32).reshape(1, 7, 10, 1)
    middle = image.extract_glimpse(x, [3, 2], [[0.0, 0.0]])
    assert middle.shape.known == (1, 3, 2, 1)
    np.testing.assert_array_equal(run(middle), x[:, 2:5, 4:6])
    corner = image.extract_glimpse(x, [3, 2], [[2.0, 3.0]], centered=False, normalized=False)
    np.testing.assert_array_equal(run(corner), x[:, 0:3, 2:4])
    for uniform in (True, False):
        beyond = run(image.extract_glimpse(x, [4, 4], [[1.0, 1.0]], uniform_noise=uniform))
        np.testing.assert_array_equal(beyond[:, :2, :2], x[:, 5:, 8:])
        assert np.ptp(beyond[:, 2:]) > 1
    nothing = run(image.extract_glimpse(x, [4, 4], [[1.0, 1.0]], noise="zero"))
    np.testing.assert_array_equal(nothing, np.pad(x[:, 5:, 8:], [(0, 0), (0, 2), (0, 2), (0, 0)]))
    normal = run(image.extract_glimpse(x, [90, 90], [[0.0, 0.0]], noise="gaussian"))
    assert normal.min() < 0 < 70 < normal.max()  # Uniform noise stays between the extremes.


def test_images_that_do_not_exist_are_refused_when_it_runs():
    y = image.crop_and_resize(BATCH, [[0.0, 0.0, 1.0, 1.0]], [2], [2, 2])
    with pytest.raises(ExecutionError, match="out of range"):
        run(y)


def test_boxes_are_picked_by_score_and_overlap():
    boxes = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.9], [0.0, 5.0, 1.0, 6.0]]
    scores = [0.5, 0.75, 0.25]
    pick = image.non_max_suppression
    assert run(pick(boxes, scores, 3)).tolist() == [1, 2]
    assert run(pick(boxes, scores, 3, iou_threshold=0.95)).tolist() == [1, 0, 2]
    assert run(pick(boxes, scores, 3, score_threshold=0.3)).tolist() == [1]
    assert run(pick(boxes, scores, hr.constant(1))).tolist() == [1]
    found, count = image.non_max_suppression_padded(boxes, scores, 4, pad_to_max_output_size=True)
    assert found.shape.known == (4,)
    assert [v.tolist() for v in run([found, count])] == [[1, 2, 0, 0], 2]
    softly = image.non_max_suppression_with_scores
    assert run(softly(boxes, scores, 3, soft_nms_sigma=0.5))[0].tolist() == [1, 2]
    found, lowered = run(softly(boxes, scores, 3, iou_threshold=0.95, soft_nms_sigma=0.5))
    assert found.tolist() == [1, 2, 0]
    np.testing.assert_allclose(lowered, [0.75, 0.25, 0.5 * np.exp(-0.81)], rtol=1e-5)
    table = [[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]]
    assert run(image.non_max_suppression_overlaps(table, scores, 3)).tolist() == [1, 2]


ERRORS = {
    "rank": (lambda: image.flip_up_down(draw(2, 2)), ShapeError, "3 to 4 dimensions"),
    "unknown rank": (
        lambda: image.resize(hr.placeholder(hr.float32), [2, 2]),
        ShapeError,
        "3 or 4 dim",
    ),
    "fraction": (lambda: image.central_crop(IMAGE, 0.0), AttributeValueError, r"in \(0, 1\]"),
    "small target": (
        lambda: image.pad_to_bounding_box(IMAGE, 1, 0, 4, 5),
        AttributeValueError,
        "must be 1 larger",
    ),
    "negative offset": (
        lambda: image.pad_to_bounding_box(IMAGE, -1, 0, 4, 5),
        AttributeValueError,
        "offset_height must be >= 0",
    ),
    "large box": (
        lambda: image.crop_to_bounding_box(IMAGE, 1, 0, 4, 5),
        AttributeValueError,
        "reach beyond the height 4",
    ),
    "empty box": (
        lambda: image.crop_to_bounding_box(IMAGE, 1, 0, 0, 5),
        AttributeValueError,
        "target_height must be >= 1",
    ),
    "crop": (lambda: hr.random_crop(IMAGE, [9, 1, 1]), ShapeError, "does not fit"),
    "method": (lambda: image.resize(IMAGE, [2, 2], 7), AttributeValueError, "ResizeMethod"),
    "size": (lambda: image.resize(IMAGE, [2]), ShapeError, "height and width"),
    "no size": (lambda: image.resize(IMAGE, [0, 2]), ShapeError, "positive"),
    "float size": (lambda: image.resize(IMAGE, [2.5, 2.0]), DTypeError, "must be integers"),
    "resized rank": (lambda: image.resize(draw(2, 2), [2, 2]), ShapeError, "3 or 4 dim"),
    "strings": (
        lambda: image.resize_bilinear(hr.constant([[[["a"]]]]), [2, 2]),
        DTypeError,
        "real numbers",
    ),
    "boxes": (
        lambda: image.crop_and_resize(BATCH, [[0.0, 1.0]], [0], [2, 2]),
        ShapeError,
        "boxes must have shape",
    ),
    "no crop size": (
        lambda: image.crop_and_resize(BATCH, [[0.0, 0.0, 1.0, 1.0]], [0]),
        AttributeValueError,
        "crop_size is missing",
    ),
    "offsets": (
        lambda: image.extract_glimpse(BATCH, [2, 2], [[0.0, 0.0]]),
        ShapeError,
        "offsets must have shape",
    ),
    "glimpse noise": (
        lambda: image.extract_glimpse(BATCH[:1], [2, 2], [[0.0, 0.0]], noise="loud"),
        AttributeValueError,
        "noise must be one of uniform, gaussian, zero, got 'loud'",
    ),
    "large glimpse": (
        lambda: image.extract_glimpse(BATCH[:1], [1 << 20, 1 << 20], [[0.0, 0.0]]),
        ShapeError,
        "too large",
    ),
    "crop method": (
        lambda: image.crop_and_resize(BATCH, [[0.0] * 4], [0], [2, 2], method="area"),
        AttributeValueError,
        "'bilinear' or 'nearest'",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name):
    build, error, match = ERRORS[name]
    with pytest.raises(error, match=match):
        build()
