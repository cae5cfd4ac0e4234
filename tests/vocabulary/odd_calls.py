"""Calls of functions with odd arguments: unknown ranks, fed axes, nothing, axes twice, all dtypes.

Programs are made by chance, and are always the same for a seed. Each is a few lines for
``generate_outcomes.outcome``: a call, and its gradient where the first argument has one.
"""

from __future__ import annotations

import random
from math import prod

SHAPES = ((), (1,), (2,), (3,), (0,), (2, 3), (3, 2), (0, 3), (2, 0), (2, 2), (1, 3), (2, 3, 2))
DTYPES = ("float32",) * 6 + ("float64", "int32", "int32", "int64", "bool", "float16", "uint8")
DTYPES += ("complex64",)
# How an array is handed over: as Python's or NumPy's, as a constant, or fed, known or not.
HANDED = ("python", "numpy", "constant", "constant", "unknown", "unknown", "sized", "ranked")

UNARY = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "digamma",
    "erf",
    "erfc",
    "exp",
    "expm1",
    "floor",
    "lgamma",
    "log",
    "log1p",
    "negative",
    "reciprocal",
    "rint",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "identity",
    "is_finite",
    "is_inf",
    "is_nan",
    "logical_not",
    "ones_like",
    "zeros_like",
    "shape",
    "size",
    "rank",
    "stop_gradient",
    "nn.relu",
    "nn.relu6",
    "nn.elu",
    "nn.selu",
    "nn.softplus",
    "nn.softsign",
    "nn.leaky_relu",
    "nn.l2_loss",
    "nn.softmax",
    "nn.log_softmax",
    "nn.crelu",
    "math.bessel_i0e",
    "math.bessel_i1e",
    "math.log_sigmoid",
    "math.invert_permutation",
    "linalg.diag",
    "linalg.diag_part",
    "linalg.trace",
    "linalg.adjoint",
    "linalg.transpose",
    "linalg.tensor_diag",
    "linalg.tensor_diag_part",
    "transpose",
    "squeeze",
    "unique",
    "unstack",
    "where",
    "matrix_inverse",
    "matrix_determinant",
    "math.conj",
    "math.real",
    "math.imag",
    "math.angle",
    "image.flip_left_right",
    "image.flip_up_down",
    "image.rot90",
    "image.transpose",
    "image.per_image_standardization",
    "image.rgb_to_grayscale",
    "image.grayscale_to_rgb",
    "math.is_non_decreasing",
    "math.is_strictly_increasing",
    "math.zero_fraction",
    "global_norm",
    "add_n",
    "stack",
    "convert_to_tensor",
    "cholesky",
]
BINARY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "truediv",
    "floordiv",
    "floormod",
    "mod",
    "pow",
    "maximum",
    "minimum",
    "squared_difference",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "equal",
    "not_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "atan2",
    "div_no_nan",
    "math.multiply_no_nan",
    "math.xdivy",
    "math.xlogy",
    "truncatediv",
    "truncatemod",
    "realdiv",
    "matmul",
    "math.nextafter",
    "bitwise.bitwise_and",
    "bitwise.bitwise_or",
    "broadcast_to",
    "broadcast_dynamic_shape",
    "gather",
    "gather_nd",
    "tile",
    "reshape",
    "math.polyval",
    "nn.bias_add",
    "math.bincount",
    "math.in_top_k",
    "dynamic_partition",
    "boolean_mask",
    "assert_equal",
    "assert_less",
    "nn.embedding_lookup",
    "expand_dims",
    "math.igamma",
    "math.betainc",
    "linalg.matvec",
    "cross",
    "linalg.solve",
    "math.segment_sum",
    "math.segment_mean",
    "math.segment_max",
    "setdiff1d",
    "searchsorted",
    "nn.xw_plus_b",
    "clip_by_norm",
    "matrix_set_diag",
    "nn.top_k",
]
REDUCTIONS = [
    "reduce_sum",
    "reduce_mean",
    "reduce_max",
    "reduce_min",
    "reduce_prod",
    "reduce_all",
    "reduce_any",
    "reduce_logsumexp",
    "math.reduce_euclidean_norm",
    "math.reduce_variance",
    "math.reduce_std",
    "norm",
    "math.count_nonzero",
]
ALONG = [
    "argmax",
    "argmin",
    "cumsum",
    "cumprod",
    "reverse",
    "expand_dims",
    "squeeze",
    "nn.softmax",
    "nn.log_softmax",
    "sort",
    "argsort",
    "nn.l2_normalize",
    "nn.moments",
    "unstack",
    "roll",
]
LOSSES = [
    "absolute_difference",
    "mean_squared_error",
    "log_loss",
    "huber_loss",
    "hinge_loss",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "mean_pairwise_squared_error",
    "cosine_distance",
    "sparse_softmax_cross_entropy",
]
SEGMENTS = ("unsorted_segment_sum", "unsorted_segment_max", "unsorted_segment_mean")


class Calls:
    """Makes programs by chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def one_of(self, *items: str) -> str:
        return items[int(self.chance.random() * len(items))]

    def program(self) -> str:
        kinds = (self.unary, self.binary, self.reduction, self.along, self.loss, self.segment)
        kinds += (self.joined, self.padded, self.sliced, self.matrix, self.images, self.contracted)
        kinds += (self.reduction, self.binary, self.selected, self.converted, self.sparse)
        return kinds[int(self.chance.random() * len(kinds))]()

    def array(self, shape: tuple[int, ...] | None = None, dtype: str | None = None) -> str:
        shape = self.shape() if shape is None else shape
        dtype = self.one_of(*DTYPES) if dtype is None else dtype
        values = [int(self.chance.random() * 7) - 2 for _ in range(prod(shape))]
        scale = " / 2" if dtype.startswith(("float", "complex")) else ""
        if dtype == "uint8":
            values = [abs(v) for v in values]
        return f"(np.array({values}){scale}).astype({dtype!r}).reshape({shape})"

    def shape(self) -> tuple[int, ...]:
        return SHAPES[int(self.chance.random() * len(SHAPES))]

    def handed(self, shape: tuple[int, ...] | None = None, dtype: str | None = None) -> str:
        """Return an expression of a tensor, or of what converts to one."""
        shape = self.shape() if shape is None else shape
        array = self.array(shape, dtype)
        how = self.one_of(*HANDED)
        if how == "python":
            return f"{array}.tolist()"
        if how == "numpy":
            return array
        if how == "constant":
            return f"T.constant({array})"
        known = {"unknown": None, "sized": list(shape), "ranked": [None] * len(shape)}[how]
        return f"T.placeholder_with_default({array}, {known})"

    def axis(self) -> str:
        number = [str(int(self.chance.random() * 5) - 2) for _ in range(2)]
        plain = (
            number[0],
            f"[{number[0]}]",
            f"[{number[0]}, {number[1]}]",
            "None",
            "[]",
            "0",
            "-1",
        )
        chosen = self.one_of(*plain, "fed", "fed")
        if chosen != "fed":
            return chosen
        value = self.one_of(*plain[:3])
        known = self.one_of("None", "[]" if value == number[0] else "[None]")
        return f"T.placeholder_with_default(np.array({value}, np.int32), {known})"

    def call(self, first: str, call: str) -> str:
        """Return a program of a call of ``x``, with its gradient."""
        lines = [f"x = {first}", f"y = {call}"]
        if first.startswith("T.") and "'float" in first and self.chance.random() < 0.7:
            lines += [
                "z = y[0] if isinstance(y, (list, tuple)) and y else y",
                "g = T.gradients(z, x)[0] if z.dtype.is_floating else None",
                "[y, None if g is None else T.convert_to_tensor(g)]",
            ]
        else:
            lines.append("y")
        return "\n".join(lines)

    def unary(self) -> str:
        return self.call(self.handed(), f"T.{self.one_of(*UNARY)}(x)")

    def binary(self) -> str:
        shape = self.shape()
        other = self.handed(shape if self.chance.random() < 0.5 else None)
        first = self.handed(shape)
        if self.chance.random() < 0.5:
            dtype = self.one_of("float32", "int32", "float64")
            first, other = self.handed(shape, dtype), self.handed(shape, dtype)
        return self.call(first, f"T.{self.one_of(*BINARY)}(x, {other})")

    def reduction(self) -> str:
        keep = self.one_of("", "", ", keepdims=True", ", keepdims=False")
        name = self.one_of(*REDUCTIONS)
        return self.call(self.handed(), f"T.{name}(x, axis={self.axis()}{keep})")

    def along(self) -> str:
        name = self.one_of(*ALONG)
        more = ", shift=1" if name == "roll" else ""
        word = "axes" if name == "nn.moments" else "axis"
        return self.call(self.handed(), f"T.{name}(x, {word}={self.axis()}{more})")

    def loss(self) -> str:
        shape = self.one_of("2, 3", "2, 2", "3, 1", "0, 3", "2, 3, 2")
        dims = tuple(map(int, shape.split(", ")))
        name = self.one_of(*LOSSES)
        labels = self.handed(dims, "float32")
        if name.startswith("sparse"):
            labels = self.handed(dims[: self.one_of("1", "2").count("1") or 2], "int32")
        choices = (dims, dims[:1], (*dims[:-1], 1), (1,), (), (1,) * len(dims), (*dims, 1), (2,))
        weights = self.handed(choices[int(self.chance.random() * len(choices))], "float32")
        reduction = self.one_of("", "", ", reduction='none'", ", reduction='weighted_mean'")
        axis = ", axis=1" if name == "cosine_distance" else ""
        x = self.handed(dims, "float32")
        return self.call(x, f"T.losses.{name}({labels}, x, weights={weights}{axis}{reduction})")

    def segment(self) -> str:
        shape = self.shape()
        ids = self.handed(shape[:1] if self.chance.random() < 0.7 else None, "int32")
        name = self.one_of(*SEGMENTS)
        return self.call(self.handed(shape, "float32"), f"T.math.{name}(x, {ids}, 4)")

    def joined(self) -> str:
        shape = self.shape()
        other = self.handed(shape if self.chance.random() < 0.7 else None, "float32")
        name = self.one_of("concat([x, {0}], {1})", "stack([x, {0}], {1})", "split(x, 2, {1})")
        name = self.one_of(name, name, "split(x, [1, 1], {1})", "split(x, [1, -1], {1}, num=2)")
        return self.call(self.handed(shape, "float32"), "T." + name.format(other, self.axis()))

    def padded(self) -> str:
        paddings = self.handed((self.one_of("a", "b", "b").count("b") + 1, 2), "int32")
        mode = self.one_of("CONSTANT", "REFLECT", "SYMMETRIC", "EDGE")
        return self.call(self.handed(), f"T.pad(x, {paddings}, {mode!r})")

    def sliced(self) -> str:
        count = int(self.chance.random() * 3) + 1
        parts = [
            self.one_of(":", "0", "-1", "1:", ":-1", "::2", "::-1", "...", "None", "5", "1:0")
            for _ in range(count)
        ]
        shape = self.shape()
        begin, size = (self.handed((len(shape),), "int32") for _ in range(2))
        calls = (f"x[{', '.join(parts)}]", f"T.slice(x, {begin}, {size})")
        return self.call(f"T.convert_to_tensor({self.handed(shape)})", self.one_of(*calls))

    def matrix(self) -> str:
        call = self.one_of(
            "matmul(x, {0}, transpose_a=True)",
            "matmul(x, {0}, transpose_b=True)",
            "matrix_band_part(x, {1}, {1})",
            "eye({1}, {1})",
            "linalg.diag(x)",
            "linalg.set_diag(x, {0})",
            "linalg.norm(x, {2}, axis={3})",
            "one_hot(x, {1}, axis={1})",
            "sequence_mask(x, {1})",
        )
        word = self.one_of("1", "2", "'fro'", "'euclidean'", "np.inf", "0", "3.5")
        number = str(int(self.chance.random() * 5) - 1)
        return self.call(
            self.handed(), "T." + call.format(self.handed(), number, word, self.axis())
        )

    def images(self) -> str:
        size = [str(int(self.chance.random() * 5)) for _ in range(4)]
        if self.chance.random() < 0.4:
            size[0] = f"T.placeholder_with_default(np.int32({size[0]}), [])"
        call = self.one_of(
            "resize_image_with_crop_or_pad(x, {0}, {1})",
            "pad_to_bounding_box(x, {0}, {1}, {2}, {3})",
            "crop_to_bounding_box(x, {0}, {1}, {2}, {3})",
            "central_crop(x, 0.{3}5)",
            "rot90(x, {0})",
            "adjust_brightness(x, 0.{3})",
            "convert_image_dtype(x, 'uint8')",
            "resize_nearest_neighbor([x], [{0}, {1}])",
        )
        shape = ((2, 3, 1), (2, 2, 3), (1, 2, 3, 1), (2, 3), (0, 2, 3))
        chosen = shape[int(self.chance.random() * len(shape))]
        return self.call(self.handed(chosen), "T.image." + call.format(*size))

    def contracted(self) -> str:
        axes = self.one_of("1", "0", "2", "[[0], [0]]", "[[1], [0]]", "[[0, 1], [1, 0]]", "[0, 0]")
        if self.chance.random() < 0.3 and axes.startswith("[["):
            axes = f"T.placeholder_with_default(np.array({axes}, np.int32), None)"
        x, y = self.handed(None, "float32"), self.handed(None, "float32")
        equation = self.one_of("ij,jk->ik", "i,j->ij", "ij,ij->", "ij,kj->ik", "...i,...i")
        calls = (f"T.tensordot(x, {y}, {axes})", f"T.einsum({equation!r}, x, {y})")
        return self.call(x, self.one_of(calls[0], calls[0], calls[1]))

    def selected(self) -> str:
        shape = self.shape()
        condition = self.handed(shape if self.chance.random() < 0.6 else None, "bool")
        other = self.handed(shape if self.chance.random() < 0.7 else None, "float32")
        name = self.one_of("where", "where_v2", "where")
        bounds = self.one_of("-1.0, 1.0", "0, 2", "1.5, 0.5")
        calls = (f"T.{name}({condition}, x, {other})", f"T.clip_by_value(x, {bounds})")
        return self.call(self.handed(shape, "float32"), self.one_of(*calls))

    def converted(self) -> str:
        dtype = self.one_of("float32", "int32", "bool", "float64", "int64", "uint8", "complex64")
        array = self.array()
        calls = ("constant", "convert_to_tensor", "cast", "saturate_cast", "zeros_like")
        value = self.one_of(array, f"{array}.tolist()")
        return f"T.{self.one_of(*calls)}({value}, T.{dtype})"

    def sparse(self) -> str:
        call = self.one_of(
            "T.sparse.reduce_sum(x, axis={0})",
            "T.sparse.to_dense(x, {1})",
            "T.sparse.transpose(x)",
            "T.sparse.reorder(x)",
            "T.sparse.add(x, x)",
            "T.sparse.concat({2}, [x, x])",
            "T.sparse.slice(x, [0, {1}], [2, 2])",
            "T.sparse.reset_shape(x, [{1}, 4])",
            "T.sparse.sparse_dense_matmul(x, {3})",
            "T.sparse.reshape(x, [{1}, -1])",
            "T.sparse.fill_empty_rows(x, {1}.0)[0]",
        )
        number = str(int(self.chance.random() * 4))
        axis = self.axis().replace("None", "None")
        text = call.format(axis, number, self.one_of("0", "1", "-1", "2"), self.handed((3, 2)))
        return f"x = T.SparseTensor([[0, 1], [1, 2]], [1.0, 2.0], [2, 3])\n{text}"


def programs(count: int, seed: int) -> list[str]:
    """Return programs, none twice."""
    calls, found = Calls(seed), {}
    while len(found) < count:
        found[calls.program()] = None
    return list(found)
