"""What a function's parameter takes, as far as its name, annotation and default tell."""

from __future__ import annotations

from headrace_testing.fuzz.targets import Slot

_AXES = ("axis", "axes", "dim", "dims", "reduction_indices", "squeeze_dims", "dimension")
_AXES_ENDS = ("_axis", "_axes", "_dim", "_dims")
_SHAPES = (
    "shape",
    "size",
    "sizes",
    "multiples",
    "begin",
    "end",
    "strides",
    "paddings",
    "crops",
    "perm",
    "repeats",
    "ksize",
    "ksizes",
    "rates",
    "dilations",
    "dilation_rate",
    "num_or_size_splits",
    "lengths",
    "maxlen",
    "depth",
    "num_rows",
    "num_columns",
    "num_classes",
    "num_segments",
    "limit",
)
_SHAPE_ENDS = ("_shape", "_size", "_sizes", "_height", "_width", "_strides", "_length")
_SPARSE = ("sp_input", "sp_a", "sp_b", "sp_ids", "sp_weights", "sp_values", "hypothesis", "truth")
_LISTS = ("inputs", "values", "tensors", "arrays", "t_list", "sp_inputs", "value_list", "args")
_TEXTS = {
    "padding": ("SAME", "VALID", "EXPLICIT", "same"),
    "data_format": ("NHWC", "NCHW", "NWC", "NCW", "NDHWC", "NCDHW", "channels_last"),
    "mode": ("CONSTANT", "REFLECT", "SYMMETRIC", "reflect", "full", "economy"),
    "direction": ("ASCENDING", "DESCENDING"),
    "side": ("left", "right"),
    "method": ("bilinear", "nearest", "bicubic", "area"),
    "partition_strategy": ("mod", "div"),
    "combiner": ("mean", "sum", "sqrtn"),
    "align": ("LEFT_LEFT", "RIGHT_LEFT", "LEFT_RIGHT", "RIGHT_RIGHT"),
    "reduction": ("none", "weighted_sum", "weighted_mean"),
    "equation": ("ij,jk->ik", "ii", "...i,i->...", "ij->", "ab,", "i,i,i->i", "iij->j"),
    "ord": ("euclidean", "fro", "1"),
    "pattern": ("a", "(a*)b", "[", "(?P<x>a)", "a{2,1}", "\\d+", "", "(((", "x{99999}", "\\"),
    "rewrite": ("b", "\\1", "\\9", "\\0\\0", "\\"),
    "out_type": ("int32", "float32"),
}
_ANY_TEXTS = ("", "x", "bogus", " ", "SAME", "NHWC", "größer")


def role_of(slot: Slot) -> str:
    """Return what a parameter takes: ``"tensor"`` where nothing tells otherwise."""
    name, hint, default = slot.name, str(slot.hint), slot.default
    if name == "seed" or name.endswith("_seed"):
        return "seed"
    if "dtype" in name or name in ("out_type", "output_type", "Tout", "internal_type"):
        return "dtype"
    if name in _SPARSE:
        return "sparse"
    if hint.startswith("Variable") or name == "ref":
        return "variable"
    if isinstance(default, bool) or hint.startswith("bool"):
        return "bool"
    if isinstance(default, str) or hint.startswith("str"):
        return "text"
    if name in _AXES or name.endswith(_AXES_ENDS):
        return "axis" if hint == "Any" else "int"
    if name in _SHAPES or name.endswith(_SHAPE_ENDS):
        return "int" if hint.startswith("int") else "shape"
    if hint.startswith("int"):
        return "int"
    if hint.startswith("float") or isinstance(default, float):
        return "float"
    if name in _LISTS or hint.startswith(("Sequence[Any]", "Iterable[Any]", "list[Any]")):
        return "list"
    if hint.startswith(("Callable", "Fn", "Branch", "type", "IndexedSlices")):
        return "default"
    return "tensor"


def texts_of(slot: Slot, known: str) -> tuple[str, ...]:
    """Return texts to try for a parameter."""
    return (*_TEXTS.get(slot.name, ()), *_ANY_TEXTS, known)
