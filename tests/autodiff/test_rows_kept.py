"""Which operations hand gradients of rows on as rows: a table, compared with TensorFlow 1.15."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu", "train")

EXECUTORS = ("plan", "plain")
TABLE = np.arange(12.0, dtype=np.float32).reshape(6, 2)
ONES = np.ones((3, 2), np.float32)
PICKED = [0, 2, 2]

# From a table [6, 2] to what rows 0, 2 and 2 are gathered of.
Made = Callable[[Any], Any]

# As in TensorFlow: what is gathered, and the rows of the gradient.
ROWS: dict[str, tuple[Made, list[int]]] = {
    "itself": (lambda v: v, [0, 2, 2]),
    "identity": (lambda v: hr.identity(v), [0, 2, 2]),
    "identity_n": (lambda v: hr.identity_n([v, ONES])[0], [0, 2, 2]),
    "tuple": (lambda v: hr.tuple([v, hr.constant(ONES)])[0], [0, 2, 2]),
    "placeholder_with_default": (lambda v: hr.placeholder_with_default(v, [6, 2]), [0, 2, 2]),
    "ensure_shape": (lambda v: hr.ensure_shape(v, [None, 2]), [0, 2, 2]),
    "print": (lambda v: hr.Print(v, []), [0, 2, 2]),
    "neg": (lambda v: -v, [0, 2, 2]),
    "neg twice": (lambda v: hr.negative(hr.negative(v)), [0, 2, 2]),
    "neg of a sum": (lambda v: -hr.add_n([v, v]), [0, 2, 2, 0, 2, 2]),
    "add_n of one": (lambda v: hr.add_n([v]), [0, 2, 2]),
    "add_n": (lambda v: hr.add_n([v, v]), [0, 2, 2, 0, 2, 2]),
    "add_n with others": (lambda v: hr.add_n([hr.constant(TABLE), v]), [0, 2, 2]),
    "accumulate_n": (lambda v: hr.accumulate_n([v, v]), [0, 2, 2, 0, 2, 2]),
    "cast": (lambda v: hr.cast(v, hr.float64), [0, 2, 2]),
    "cast and back": (lambda v: hr.cast(hr.cast(v, hr.float64), hr.float32), [0, 2, 2]),
    "concat in front": (lambda v: hr.concat([v, ONES], 0), [0, 2, 2]),
    "concat in the middle": (lambda v: hr.concat([ONES[:1], v, ONES], 0), [1, 1]),
    "concat behind": (lambda v: hr.concat([ONES, v], 0), []),
    "concat of itself": (lambda v: hr.concat([v, -v], 0), [0, 2, 2]),
    "concat, counted from the end": (lambda v: hr.concat([v, ONES], -2), [0, 2, 2]),
    "concat of one": (lambda v: hr.concat([v], 0), [0, 2, 2]),
    "concat of columns": (lambda v: hr.concat([v, TABLE], 1), [0, 2, 2]),
    "concat of its columns": (lambda v: hr.concat([v, v], 1), [0, 2, 2, 0, 2, 2]),
    "all of them": (
        lambda v: hr.concat([hr.identity(-hr.add_n([v])), hr.constant(ONES)], 0),
        [0, 2, 2],
    ),
}

# Dense in TensorFlow, too: their rules compute with the gradient.
DENSE: dict[str, Made] = {
    "add": lambda v: v + v,
    "sub": lambda v: v - 2 * v,
    "mul": lambda v: v * 2.0,
    "div": lambda v: v / 2.0,
    "square": lambda v: hr.square(v),
    "abs": lambda v: hr.abs(v),
    "relu": lambda v: hr.nn.relu(v),
    "clip": lambda v: hr.clip_by_value(v, -1.0, 5.0),
    "reshape": lambda v: hr.reshape(v, [-1, 2]),
    "expand_dims": lambda v: hr.squeeze(hr.expand_dims(v, 1), 1),
    "transpose": lambda v: hr.transpose(v, [0, 1]),
    "slice": lambda v: v[0:],
    "pad": lambda v: hr.pad(v, [[0, 1], [0, 0]]),
    "tile": lambda v: hr.tile(v, [2, 1]),
    "stack": lambda v: hr.stack([v, v])[0],
    "unstack": lambda v: hr.unstack(hr.expand_dims(v, 0))[0],
    "matmul": lambda v: hr.matmul(v, np.ones((2, 2), np.float32)),
    "check_numerics": lambda v: hr.check_numerics(v, "x"),
    "where": lambda v: hr.where(v > 3, v, v),
    "reverse": lambda v: hr.reverse(v, [0]),
}


def _gradient(make: Made, source: Any, whole: bool = False) -> Any:
    made = make(source)
    y = hr.gather(made, PICKED)
    return hr.gradients(y * y if whole else y, source)[0]


def _as_dense(grad: Any) -> Any:
    return hr.convert_to_tensor(grad)


def _numeric(make: Made, executor: str) -> np.ndarray[Any, Any]:
    """Return the gradient with the table behind a product, through which it is dense."""
    with hr.Graph().as_default():
        v = hr.constant(TABLE)
        y = hr.gather(make(v * 1.0), PICKED)
        (grad,) = hr.gradients(y * y, v)
        with hr.Session(config=hr.Config(executor=executor)) as sess:
            return np.asarray(sess.run(grad))


# Of tensors of unknown rank, which axis a negative one is shows in the step: dense, see below.
SHAPED = [
    (name, shape)
    for name in ROWS
    for shape in ((6, 2), (None, 2), None)
    if not (shape is None and "concat" in name and "end" in name)
]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(("name", "shape"), SHAPED, ids=str)
def test_rows_stay_rows(name: str, shape: Any, executor: str) -> None:
    make, indices = ROWS[name]
    with hr.Graph().as_default():
        v = hr.placeholder(hr.float32, shape)
        grad = _gradient(make, v)
        assert isinstance(grad, hr.IndexedSlices)
        assert grad.dtype == hr.float32
        weighted = _gradient(make, v, whole=True)
        config = hr.Config(executor=executor, compile_after=1)
        with hr.Session(config=config) as sess:
            for _ in range(3):
                found, whole = sess.run([grad, _as_dense(weighted)], {v: TABLE})
                np.testing.assert_array_equal(found.indices, indices)
                assert found.values.shape == (len(indices), 2)
                np.testing.assert_array_equal(found.dense_shape, [6, 2])
                np.testing.assert_allclose(whole, _numeric(make, executor), rtol=1e-6)


@pytest.mark.parametrize("name", DENSE)
def test_others_make_them_dense(name: str) -> None:
    with hr.Graph().as_default():
        v = hr.placeholder(hr.float32, [6, 2])
        grad = _gradient(DENSE[name], v)
        assert isinstance(grad, hr.Tensor)
        with hr.Session() as sess:
            assert sess.run(grad, {v: TABLE + 1}).shape == (6, 2)


def test_rows_joined_along_an_axis_that_shows_in_the_step_come_dense() -> None:
    v = hr.placeholder(hr.float32)
    joined = hr.concat([v, hr.placeholder_with_default(v, None)], -1)
    grad = hr.gradients(hr.gather(joined, PICKED), v)[0]
    with hr.Session() as sess:
        found = sess.run(_as_dense(grad), {v: TABLE})
    np.testing.assert_array_equal(found, np.array([[2, 2], [0, 0], [4, 4]] + [[0, 0]] * 3))


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
def test_a_joined_variable_is_updated_by_its_rows(executor: str, index_dtype: Any) -> None:
    with hr.Graph().as_default():
        first, second = hr.Variable(TABLE), hr.Variable(ONES)
        ids = hr.placeholder(index_dtype, [None])
        picked = hr.gather(hr.concat([first, -second], 0), ids)
        step = hr.train.GradientDescentOptimizer(0.5).minimize(hr.reduce_sum(picked))
        with hr.Session(config=hr.Config(executor=executor, compile_after=1)) as sess:
            sess.run(hr.global_variables_initializer())
            for given in ([0, 6, 8, 8], [7], [], [1, 2, 3]):
                sess.run(step, {ids: np.array(given, index_dtype)})
            found = sess.run([first, second])
    wanted, other = TABLE.copy(), ONES.copy()
    wanted[:4] -= 0.5
    other += np.array([[0.5], [0.5], [1.0]], np.float32)
    np.testing.assert_allclose(found[0], wanted)
    np.testing.assert_allclose(found[1], other)


def test_second_derivatives_pass_through() -> None:
    v = hr.placeholder(hr.float32, [6, 2])
    y = hr.gather(hr.concat([-hr.identity_n([v])[0], hr.constant(ONES)], 0), PICKED)
    first = _as_dense(hr.gradients(y * y * y, v)[0])
    second = _as_dense(hr.gradients(first, v)[0])
    with hr.Session() as sess:
        found = sess.run(second, {v: TABLE})
    # Of the sum of -v**3 over rows 0, 2 and 2.
    wanted = np.zeros((6, 2))
    np.add.at(wanted, PICKED, -6 * TABLE[PICKED])
    np.testing.assert_allclose(found, wanted)


def test_a_rule_of_a_program_gets_them_dense() -> None:
    seen = []

    @hr.custom_gradient
    def tripled(x: Any) -> Any:
        def grad(dy: Any) -> Any:
            seen.append(dy)
            return 3.0 * dy

        return hr.identity(x), grad

    v = hr.placeholder(hr.float32, [6, 2])
    hr.gradients(hr.gather(tripled(v), PICKED), v)
    assert isinstance(seen[0], hr.Tensor)
