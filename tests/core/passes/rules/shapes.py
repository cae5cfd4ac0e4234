"""Cases of rules for what only changes shapes, and for constants."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace as hr
from tests.core.passes.rules.case import case, f32, i8, i32, op

# -- identities, shapes

case("identity", lambda x: hr.identity(hr.stop_gradient(hr.identity(x))) + 1.0, "Add(x, 1.0)")
case("identity", lambda x, y: hr.identity_n([x, y])[1], "y")
case("default-value", lambda x: hr.placeholder_with_default(x, [None, 3]), "x")
case("ensured-shape", lambda x: hr.ensure_shape(x, [None, 3]), "x")
# The functions yield constants where the shape is known when the graph is built.
case("known-shape", lambda x: op("Shape", x, out_type=i32), "[4, 3]")
case("known-shape", lambda x: op("Size", x, out_type=hr.int64), "12")
case("known-shape", lambda x: op("Rank", x) + 1, "3")
case(
    "known-shape-part",
    lambda x, y: hr.concat([hr.shape(x), hr.shape(y)[1:]], 0),
    "[4, 3, 3]",
    known_only=True,
)
case("cast-to-same", lambda x: op("Cast", x, hr.float32), "x")
case(
    "cast-of-cast", lambda x: hr.cast(hr.cast(x, hr.float64), hr.float16), "Cast(x, dtype=float16)"
)
case("cast-of-cast", lambda x: hr.cast(hr.cast(x, hr.float64), hr.float32), "x")
case(
    "cast-of-cast",
    lambda x: hr.cast(hr.cast(x, i32), i8),
    "Cast(x, dtype=int8)",
    x=("int16", ("n",)),
)
case(
    "cast-of-cast",
    lambda x: hr.cast(hr.cast(x, f32), "bool"),
    "Cast(x, dtype=bool)",
    x=(i8, ("n", 9)),
)
case("reshape-nothing", lambda x: hr.reshape(x, [-1, 3]), "x")
case(
    "reshape-nothing",
    lambda x: hr.squeeze(hr.squeeze(x)),
    "Squeeze(x)",
    known_only=True,
    x=(f32, ("n", 1, 3)),
)
case("reshape-of-reshape", lambda x: hr.reshape(hr.reshape(x, [-1]), [3, -1]), "Reshape(x, [3, 4])")
case("reshape-of-reshape", lambda x: hr.squeeze(hr.expand_dims(x, 0), [0]), "x")
case("stack-of-one", lambda x: hr.stack([x], axis=1), "Reshape(x, [4, 1, 3])")
case("stack-of-one", lambda x: hr.unstack(x)[0], "Reshape(x, [3])", x=(f32, (1, 3)))
case("concat-of-one", lambda x: op("Concat", [x], 0), "x")
case(
    "concat-of-one",
    lambda x, y: hr.concat([y, x, y], 1),
    "x",
    y=(f32, ("n", 0)),
)
case(
    "concat-of-concat",
    lambda x, y: hr.concat([hr.concat([x, y], 1), x], -1),
    "Concat(x, y, x, axis=-1)",
)
case("split-into-one", lambda x: hr.split(x, 1)[0], "x")
case("pad-nothing", lambda x: hr.pad(x, [[0, 0], [0, 0]]), "x")
case("pad-nothing", lambda x: hr.pad(x, [[0, 0], [0, 0]], mode="REFLECT"), "x")
case("slice-everything", lambda x: hr.slice(x, [0, 0], [-1, 3]), "x")
case("index-everything", lambda x: x[:], "x")
case("index-everything", lambda x: x[:, None, 0:3], "Reshape(x, [4, 1, 3])")
case("index-everything", lambda x: x[0], "Reshape(x, [3])", x=(f32, (1, 3)))
case("tile-once", lambda x: hr.tile(x, [1, 1]), "x")
case("tile-units", lambda x: hr.tile(x, [1, 5]), "BroadcastTo(x, [4, 5])", x=(f32, ("n", 1)))
case("reverse-nothing", lambda x: hr.reverse(x, [1]), "x", x=(f32, ("n", 1)))


def slice_grad(shape: list[int], dy: Any, *index: Any) -> Any:
    """Return the gradient for a tensor of which ``x[index]`` was taken."""
    entries = "".join("e" if i is ... else "i" if isinstance(i, int) else "s" for i in index)
    begin = [i if isinstance(i, int) else 0 for i in index]
    end = [i + 1 if isinstance(i, int) else 0 for i in index]
    open_ = "".join("1" if isinstance(i, slice) else "0" for i in index)
    options = {"entries": entries, "open_begin": open_, "open_end": open_}
    return op("StridedSliceGrad", shape, begin, end, [1] * len(index), dy, **options)


case(
    "gradients-of-all-slices",
    lambda x, y: slice_grad([2, 4, 3], x, 0) + slice_grad([2, 4, 3], y, -1),
    "Stack(x, y)",
    known_only=True,
    signs=False,
)
case(
    "gradients-of-all-slices",
    lambda x, y: (
        slice_grad([4, 2, 3], hr.exp(y), slice(None), 1)
        + hr.ones([4, 2, 3]) * hr.reduce_sum(y)
        + slice_grad([4, 2, 3], x, ..., 0, slice(None))
    ),
    "Add(Stack(x, Exp(y), axis=1), ReduceSum(y))",
    known_only=True,
    signs=False,
)


def looked_up(x, y):
    distinct, places = hr.unique(hr.floormod(y, 4))
    return hr.gather(hr.gather(x, distinct), places)


case(
    "picks-of-distinct",
    looked_up,
    "Gather(x, FloorMod(y, 4))",
    y=(i32, (7,)),
    known_only=True,
)

# -- broadcasts

case("broadcast-nothing", lambda x: hr.broadcast_to(x, hr.shape(x)), "x")
case(
    "broadcast-of-broadcast",
    lambda x: hr.broadcast_to(hr.broadcast_to(x, [3, 3]), [2, 3, 3]),
    "BroadcastTo(x, [2, 3, 3])",
    x=(f32, (3,)),
)
case(
    "broadcast-units",
    lambda x: hr.broadcast_to(x, [1, 1, 4, 3]),
    "Reshape(x, [1, 1, 4, 3])",
    known_only=True,
)
case(
    "reshape-of-scalar",
    lambda x: hr.transpose(hr.fill([4, 3], x)),
    "BroadcastTo(x, [3, 4])",
    x=(f32, ()),
)
case(
    "hoist-broadcast",
    lambda x, y: x * hr.broadcast_to(y, [4, 3]),
    "Mul(x, y)",
    y=(f32, (3,)),
    known_only=True,
)
case(
    "hoist-broadcast",
    lambda x: hr.exp(hr.broadcast_to(x, [4, 3])),
    "BroadcastTo(Exp(x), [4, 3])",
    x=(f32, (3,)),
)
case(
    "hoist-broadcast",
    lambda x, y: hr.fill([4, 3], y) + hr.broadcast_to(x, [4, 3]),
    "BroadcastTo(Add(y, x), [4, 3])",
    x=(f32, (3,)),
    y=(f32, ()),
)
case(
    "scalar-constant",
    lambda x: x * hr.constant(np.full((4, 3), 2.5, "f")),
    "Mul(x, 2.5)",
    known_only=True,
)
case(
    "uniform-constant",
    lambda x: hr.matmul(x, hr.transpose(hr.constant(np.full((4, 3), 2.5, "f")))),
    "MatMul(x, BroadcastTo(2.5, [3, 4]))",
    known_only=True,
    exact=False,
)

# -- constants

case("fold-arithmetic", lambda x: x * -hr.constant(2.0), "Mul(x, -2.0)")
case("fold-cast", lambda x: x + hr.cast(hr.constant(2), f32), "Add(x, 2.0)")
case("merge-factors", lambda x: 3.0 * (x * 0.5), "Mul(x, 1.5)")
case("merge-factors", lambda x: 100 * (x * 77), "Mul(x, 20)", x=(i8, ("n",)))
case("merge-summands", lambda x: (x - 100) + 28, "Add(x, -72)", x=(i8, ("n", 9)))
case("negate-factor", lambda x: -(x * 3.0), "Mul(x, -3.0)")
case("negate-factor", lambda x: -(x / 3.0), "Div(x, -3.0)")
case("factor-of-negated", lambda x: 3.0 * -x, "Mul(x, -3.0)")
case("factor-of-negated", lambda x: 3.0 / -x, "Div(-3.0, x)")
case("divide-by-power-of-two", lambda x: x / 128.0, "Mul(x, 0.0078125)")
case("divide-by-power-of-two", lambda x: x / [2.0, -4.0, 0.125], "Mul(x, [0.5, -0.25, 8.0])")
case("constant-condition", lambda x, y: hr.where_v2(True, x, y), "x", known_only=True)
case(
    "constant-condition",
    lambda x, y: hr.where_v2(hr.constant([False]), x, y),
    "BroadcastTo(y, [4, 3])",
    y=(f32, ()),
    known_only=True,
)
case("same-choices", lambda c, x: hr.where_v2(c, x, x), "x", c=("bool", ("n", 3)))
