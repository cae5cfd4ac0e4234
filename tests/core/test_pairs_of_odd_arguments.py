"""What pairs of odd arguments found: each is refused in our own words."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import HeadraceError

pytestmark = pytest.mark.needs("backend-cpu")


class Silent:
    """A key whose ``repr`` raises."""

    def __repr__(self) -> str:
        raise ValueError("no repr")


def deep(depth: int) -> Any:
    found: Any = {"a": 1}
    for _ in range(depth):
        found = {"a": found}
    return found


@pytest.mark.parametrize("rank", [Decimal("nan"), float("nan"), "2", 1.5, [1], None])
@pytest.mark.parametrize("method", ["with_rank", "with_rank_at_least", "with_rank_at_most"])
def test_ranks_are_whole_numbers(method: str, rank: Any) -> None:
    with pytest.raises(HeadraceError, match="the rank of a shape must be a whole number"):
        getattr(hr.TensorShape([1, 2]), method)(rank)


@pytest.mark.parametrize(
    "signature", ["text", [1], [("a",)], [(1, 2, 3)], [None], [([2], "no dtype")], 3]
)
def test_signatures_of_functions_are_pairs(signature: Any) -> None:
    with pytest.raises(HeadraceError, match=r"input_signature|dtype"):
        hr.function(lambda x: x, input_signature=signature)


@pytest.mark.needs("data")
@pytest.mark.parametrize(
    "classes", [deep(5000), {Silent(): 1}, {"a": {Silent(): 1}}, [deep(900)], (1, (deep(90), 2))]
)
def test_structures_in_messages_are_cut(classes: Any) -> None:
    with pytest.raises(HeadraceError, match=r"\w") as found:
        hr.data.Iterator.from_structure({"b": hr.float32}, {"b": [2]}, output_classes=classes)
    assert len(str(found.value)) < 2000


@pytest.mark.needs("train")
@pytest.mark.parametrize(
    "step", [10**5000, -(10**5000), 2**63, 2**70], ids=["long", "negative", "63", "70"]
)
def test_steps_of_checkpoints_have_64_bits(step: int, tmp_path: Any) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        variable = hr.get_variable("v", [2])
        session.run(variable.initializer)
        with pytest.raises(HeadraceError, match="global_step must be an integer of 64 bits"):
            hr.train.Saver().save(session, str(tmp_path / "model"), global_step=step)
    assert not list(tmp_path.iterdir())


@pytest.mark.needs("train")
@pytest.mark.parametrize("text", [b"\xff", "\ud800", b"a\xc3"])
@pytest.mark.parametrize("field", ["summary_description", "display_name"])
def test_texts_of_summaries_are_texts(field: str, text: Any) -> None:
    with hr.Graph().as_default(), pytest.raises(HeadraceError, match=f"{field} must be a text"):
        hr.summary.tensor_summary("a", 1.0, **{field: text})


@pytest.mark.parametrize("other", [np.zeros((0, 3)), np.array(2), np.array([[2, 3]]), np.zeros(5)])
def test_shapes_are_compared_with_arrays_as_wholes(other: Any) -> None:
    assert (hr.TensorShape([2, 3]) == other) is False
    assert (hr.TensorShape(None) == other) is False
    assert (hr.TensorShape([2, 3]) == np.array([2, 3])) is True


def test_fetches_that_hold_themselves_are_refused_piece_by_piece() -> None:
    around: list[Any] = []
    around.append(around)
    with hr.Graph().as_default(), hr.Session() as session:
        hr.constant(1.0)
        with pytest.raises(HeadraceError, match="contains itself"):
            session.partial_run_setup(around, [])


@pytest.mark.needs("train")
@pytest.mark.parametrize("capacity", [[1], "a", None, np.array([Silent()])])
@pytest.mark.parametrize("make", ["range_input_producer", "string_input_producer"])
def test_capacities_of_producers_are_whole_numbers(make: str, capacity: Any) -> None:
    given = 3 if make.startswith("range") else ["a"]
    with hr.Graph().as_default(), pytest.raises(HeadraceError, match="capacity must be a whole"):
        getattr(hr.train, make)(given, capacity=capacity)


@pytest.mark.needs("io")
@pytest.mark.parametrize("quality", [[1], "a", None, [[[1]]], 1.5])
def test_qualities_are_whole_numbers(quality: Any) -> None:
    image = np.zeros((2, 2, 3), np.uint8)
    with pytest.raises(HeadraceError, match="jpeg_quality must be a whole number"):
        hr.image.random_jpeg_quality(image, quality, 100)
    with pytest.raises(HeadraceError, match="jpeg_quality must be a whole number"):
        hr.image.random_jpeg_quality(image, 1, quality)


@pytest.mark.parametrize("scope", [3, None, [], np.array(["a"]), b"a", "deep"])
def test_scopes_of_drawings_are_texts(scope: Any) -> None:
    if scope == "deep":
        scope = {}
        for _ in range(5000):
            scope = {1: scope}
    with hr.Graph().as_default() as graph:
        hr.no_op(name="a/b")
        with pytest.raises(HeadraceError, match="scope must be a string"):
            graph.to_svg(scope=scope)


def test_keys_of_structures_are_told_whatever_they_show() -> None:
    with pytest.raises(HeadraceError, match="the keys differ"):
        hr.nest.assert_same_structure({}, {Silent(): 1})


LABELS, SCORES = [True, False], [0.3, 0.7]
# A call of each place that took an odd number as it came, and what must be said of it.
NUMBERS: dict[str, tuple[Any, str]] = {
    "sensitivity": (
        lambda v: hr.metrics.specificity_at_sensitivity(LABELS, SCORES, v),
        "sensitivity must be",
    ),
    "specificity": (
        lambda v: hr.metrics.sensitivity_at_specificity(LABELS, SCORES, v),
        "specificity must be",
    ),
    "max_boxes": (
        lambda v: hr.get_default_graph().to_svg(max_boxes=v),
        "max_boxes must be a whole number",
    ),
    "training": (
        lambda v: hr.layers.batch_normalization(hr.ones([2, 2]), training=v),
        "training must be True, False or a scalar bool tensor",
    ),
    "num_parallel_batches": (
        lambda v: hr.data.experimental.map_and_batch(lambda x: x, 2, v),
        "num_parallel_batches must be a whole number",
    ),
    "batch_size": (
        lambda v: hr.data.experimental.map_and_batch(lambda x: x, v, 2),
        "batch_size must be a whole number",
    ),
}


@pytest.mark.needs("data", "train")
@pytest.mark.parametrize("value", [Decimal("sNaN"), Decimal("NaN"), float("nan"), 1.5, "\ud800"])
@pytest.mark.parametrize("argument", NUMBERS)
def test_odd_numbers_are_refused_in_our_words(argument: str, value: Any) -> None:
    call, match = NUMBERS[argument]
    with hr.Graph().as_default(), pytest.raises(HeadraceError, match=match):
        call(value)


@pytest.mark.needs("train")
@pytest.mark.parametrize("capacity", [2**63, 10**400, 10**5000], ids=["63", "400", "5000"])
def test_capacities_have_64_bits(capacity: int) -> None:
    bucketed = {"which_bucket": 0, "batch_size": 2, "num_buckets": 2, "capacity": capacity}
    calls: list[Any] = [
        lambda: hr.FIFOQueue(capacity, [hr.float32]),
        lambda: hr.train.batch([hr.ones([2])], 2, capacity=capacity),
        lambda: hr.train.string_input_producer(["a"], capacity=capacity),
        lambda: hr.train.range_input_producer(3, capacity=capacity),
        lambda: hr.train.bucket([hr.ones([2])], **bucketed),
    ]
    for call in calls:
        with (
            hr.Graph().as_default(),
            pytest.raises(HeadraceError, match="capacity must be at most"),
        ):
            call()


@pytest.mark.needs("io")
@pytest.mark.parametrize("name", ["x" * 300, "x" * 100_000, "a/" * 5000, "é" * 200])
def test_folders_whose_names_are_too_long_are_told(name: str) -> None:
    with pytest.raises(HeadraceError, match="cannot be read"):
        hr.io.read_saved_model(name)
