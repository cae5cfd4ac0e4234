"""What the whole campaign of odd arguments found: each is refused in our own words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import pytest

import headrace as hr
from headrace.errors import HeadraceError

pytestmark = pytest.mark.needs("backend-cpu", "autodiff", "data", "io", "train")


class Silent:
    """A value, or a key, whose ``repr`` raises."""

    def __repr__(self) -> str:
        raise ValueError("no repr")


class Circular:
    """A value whose ``repr`` never ends."""

    def __repr__(self) -> str:
        return repr(self)


class SilentList(list[Any]):
    """A list whose ``repr`` raises."""

    def __repr__(self) -> str:
        raise ValueError("no repr")


class Huge:
    """What says that it has 10^12 items, and has two."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return 10**12

    def __iter__(self) -> Iterator[Any]:
        return iter(self.parts)


class Endless(Mapping[str, int]):
    """A mapping whose keys do not end."""

    def __getitem__(self, key: str) -> int:
        return 1

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Iterator[str]:
        number = 0
        while True:
            yield str(number)
            number += 1


def named(name: Any) -> dict[str, Any]:
    return {"l1_regularization_strength": -1.0, "name": name}


NUMBERS: dict[str, Callable[[Any], Any]] = {
    "aggregation_method": lambda v: hr.gradients(hr.ones([]), [], aggregation_method=v),
    "aggregation_method of an optimizer": lambda v: hr.train.AdamOptimizer().compute_gradients(
        hr.Variable(1.0) * 1.0, aggregation_method=v
    ),
    "whence": lambda v: hr.gfile.GFile("place", "w").seek(0, v),
    "virtual_batch_size": lambda v: hr.layers.batch_normalization(
        hr.ones([4, 2]), training=True, virtual_batch_size=v
    ),
    "axis": lambda v: hr.layers.batch_normalization(hr.ones([4, 2]), axis=[v]),
}


@pytest.mark.parametrize("value", [Decimal("sNaN"), Decimal("NaN"), 1.5, float("inf"), "1"])
@pytest.mark.parametrize("argument", NUMBERS)
def test_numbers_are_whole(argument: str, value: Any) -> None:
    match = f"{argument.partition(' ')[0]} must be a whole number"
    with hr.Graph().as_default(), pytest.raises(HeadraceError, match=match):
        NUMBERS[argument](value)


@pytest.mark.parametrize("number", [0, -1, -(10**400), 10**400], ids=["0", "-1", "-400", "400"])
def test_threads_of_pipelines_are_few_and_some(number: int) -> None:
    pipelines: list[Any] = [
        lambda: hr.train.batch([hr.ones([2])], 2, num_threads=number),
        lambda: hr.train.shuffle_batch([hr.ones([2])], 2, 10, 1, num_threads=number),
        lambda: hr.train.maybe_batch([hr.ones([2])], True, 2, num_threads=number),
    ]
    for pipeline in pipelines:
        with (
            hr.Graph().as_default(),
            pytest.raises(HeadraceError, match="num_threads must be from 1 to"),
        ):
            pipeline()


LONG: dict[str, Callable[[int], Any]] = {
    "offset_height": lambda v: hr.image.crop_to_bounding_box(hr.ones([4, 4, 3]), v, 0, 1, 1),
    "Max attempts": lambda v: hr.image.sample_distorted_bounding_box(
        [4, 4, 3], hr.zeros([1, 1, 4]), max_attempts=v
    ),
    "key_index": lambda v: hr.lookup.TextFileInitializer(
        "place", hr.int64, v, hr.int64, hr.lookup.TextFileIndex.LINE_NUMBER
    ),
    "num_oov_buckets": lambda v: hr.lookup.index_table_from_tensor(["a"], v),
    "patience": lambda v: hr.train.EarlyStoppingHook(hr.ones([]), v),
    "max_to_keep": lambda v: (hr.Variable(1.0), hr.train.Saver(max_to_keep=v)),
    "keep_best": lambda v: (hr.Variable(1.0), hr.train.Saver(keep_best=v)),
    "num_buckets": lambda v: hr.train.bucket([hr.ones([2])], 0, 2, v),
    "virtual_batch_size": NUMBERS["virtual_batch_size"],
    "component_index": lambda v: hr.Barrier(hr.float32).insert_many(v, ["a"], [1.0]),
    "the total of a progress": lambda v: hr.train.Progress(v),
    "replicas_to_aggregate": lambda v: hr.train.SyncReplicasOptimizer(
        hr.train.GradientDescentOptimizer(0.1), v
    ),
}


@pytest.mark.parametrize("argument", LONG)
def test_numbers_of_thousands_of_digits_are_told_by_their_bits(argument: str) -> None:
    with hr.Graph().as_default(), pytest.raises(HeadraceError, match=f"{argument}.* 16610 bits"):
        LONG[argument](-(10**5000))


@pytest.mark.parametrize("limit", [-1, -(10**5000)], ids=["short", "long"])
def test_limits_of_lists_in_messages_are_counts(limit: int) -> None:
    assert hr.errors.listing(["a", "b"], limit) == " and 2 more"
    assert hr.errors.shorten(["a", "b"], limit) == "  ... and 2 more lines"


MESSAGES: dict[str, Callable[[Any], Any]] = {
    "assert_type": lambda v: hr.assert_type(1, hr.float32, message=v),
    "assert_integer": lambda v: hr.assert_integer(1.0, message=v),
    "assert_scalar": lambda v: hr.debugging.assert_scalar([1.0], message=v),
    "assert_rank": lambda v: hr.assert_rank([1.0], 2, message=v),
    "assert_shapes": lambda v: hr.debugging.assert_shapes([(hr.ones([2]), [3])], message=v),
    "FtrlOptimizer": lambda v: hr.train.FtrlOptimizer(0.1, **named(v)),
    "ProximalAdagradOptimizer": lambda v: hr.train.ProximalAdagradOptimizer(0.1, **named(v)),
    "the name of a scope": lambda v: hr.name_scope(
        v, values=[hr.ones([]), other_graph()]
    ).__enter__(),
}


def other_graph() -> hr.Tensor:
    with hr.Graph().as_default():
        return hr.ones([])


@pytest.mark.parametrize("words", [Silent(), Circular(), SilentList([1]), [Silent()]])
@pytest.mark.parametrize("function", MESSAGES)
def test_words_that_cannot_be_shown_are_told_by_their_class(function: str, words: Any) -> None:
    with (
        hr.Graph().as_default(),
        pytest.raises(HeadraceError, match=r"cannot be shown|deeper than Python can show"),
    ):
        MESSAGES[function](words)


def test_words_that_can_be_shown_come_first() -> None:
    with hr.Graph().as_default(), pytest.raises(HeadraceError, match=r"^mine: "):
        hr.assert_integer(1.0, message="mine")


@pytest.mark.parametrize("keys", [{Silent(): 1}, {"a": 1, Silent(): 2}])
@pytest.mark.parametrize("names", [None, ["a"]])
def test_elements_of_queues_tell_keys_that_cannot_be_shown(names: Any, keys: Any) -> None:
    with hr.Graph().as_default():
        queue = hr.FIFOQueue(5, [hr.float32], [[]], names=names)
        with pytest.raises(HeadraceError, match=r"got the keys .*a Silent that cannot be shown"):
            queue.enqueue(keys)


def test_branches_tell_keys_that_cannot_be_shown() -> None:
    with (
        hr.Graph().as_default(),
        pytest.raises(HeadraceError, match="a Silent that cannot be shown"),
    ):
        hr.cond(hr.constant(True), lambda: {Silent(): hr.ones([])}, lambda: hr.ones([]))


ENDLESS: dict[str, Callable[[Any], Any]] = {
    "config": lambda v: hr.nn.rnn_cell.LSTMCell.from_config(v),
    "config of another": lambda v: hr.nn.rnn_cell.GRUCell.from_config(v),
    "output_shapes": lambda v: hr.data.Iterator.from_structure({"0": hr.float32}, v),
    "vals": lambda v: hr.FIFOQueue(5, [hr.float32], [[]]).enqueue(v),
    "vals of a queue with names": lambda v: hr.FIFOQueue(
        5, [hr.float32], [[]], names=["0"]
    ).enqueue(v),
}


@pytest.mark.parametrize("argument", ENDLESS)
def test_mappings_end(argument: str) -> None:
    label = argument.partition(" ")[0]
    with (
        hr.Graph().as_default(),
        pytest.raises(HeadraceError, match=f"{label} must hold at most {1 << 20} items"),
    ):
        ENDLESS[argument](Endless())


def test_inputs_of_operations_are_counted_as_they_come() -> None:
    with hr.Graph().as_default() as graph:
        x = hr.constant(1.0)
        add = hr.add(x, x).op
        rest: dict[str, Any] = {"arity": (), "attrs": {}, "specs": [x.spec], "inputs": Huge(x, x)}
        made = graph.add_operation(add.schema, name="more", **rest)
        assert made.inputs == (x, x)


LATEST = "model_checkpoint_path"
PATHS = ["", "\ud800", "a\0b", "x" * 300]


@pytest.mark.parametrize("path", PATHS, ids=["empty", "surrogate", "NUL", "long"])
def test_paths_of_checkpoints_are_names_of_files(path: str) -> None:
    for paths in ({LATEST: path}, {"all_model_checkpoint_paths": [path]}):
        with pytest.raises(HeadraceError, match="a path of a checkpoint"):
            hr.train.generate_checkpoint_state_proto(
                "place", **{"model_checkpoint_path": "a"} | paths
            )


@pytest.mark.parametrize("path", [3, None, b"a", [["a"]], Decimal("sNaN")])
def test_paths_of_checkpoints_are_texts(path: Any) -> None:
    with pytest.raises(HeadraceError, match=re.escape("a path of a checkpoint must be a string")):
        hr.train.generate_checkpoint_state_proto("place", "a", [path])


def test_normalization_needs_an_axis() -> None:
    with hr.Graph().as_default(), pytest.raises(HeadraceError, match="axis must name an axis"):
        hr.layers.batch_normalization(hr.ones([4, 2]), axis=[])
