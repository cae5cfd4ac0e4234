"""Declaring ops, and reading their arguments in kernels and rules.

``op`` makes a function the declaration of an op; the kinds annotate its tensors. The helpers are
those with which core's own declarations compute shapes, for kernels that must agree with them.
"""

from headrace.dtypes import ALL as ALL_DTYPES
from headrace.dtypes import (
    DType,
    as_dtype,
)
from headrace.graph.attributes import (
    attribute_key,
)
from headrace.graph.builder import (
    build_node,
)
from headrace.graph.schema import (
    OPS,
    REQUIRED,
    AttrParam,
    Kind,
    OpSchema,
    call_op,
    describe_inputs,
)
from headrace.graph.spec import (
    MAX_RANK,
    TensorSpec,
    as_shape,
    handle_spec,
    list_spec,
)
from headrace.ops.declare import (
    Spec,
    op,
    require,
)
from headrace.ops.indexing import (
    ELEMENT,
    ELLIPSIS,
    SLICE,
    decode,
)
from headrace.ops.kinds import (
    Anything,
    Bool,
    ComplexNumber,
    Floating,
    Index,
    Inexact,
    Integer,
    Numeric,
    Precise,
    Real,
    Resource,
    Same,
    SameValue,
    String,
    Summable,
    TensorList,
    Value,
)
from headrace.ops.reduce import (
    Axis,
    reduced_axes,
)
from headrace.ops.windows import (
    Padding,
    channel_axis,
    padding_of,
    window_padding,
)
from headrace.shapes import (
    Shape,
    normalize_axis,
)

__all__ = [
    "ALL_DTYPES",
    "ELEMENT",
    "ELLIPSIS",
    "MAX_RANK",
    "OPS",
    "REQUIRED",
    "SLICE",
    "Anything",
    "AttrParam",
    "Axis",
    "Bool",
    "ComplexNumber",
    "DType",
    "Floating",
    "Index",
    "Inexact",
    "Integer",
    "Kind",
    "Numeric",
    "OpSchema",
    "Padding",
    "Precise",
    "Real",
    "Resource",
    "Same",
    "SameValue",
    "Shape",
    "Spec",
    "String",
    "Summable",
    "TensorList",
    "TensorSpec",
    "Value",
    "as_dtype",
    "as_shape",
    "attribute_key",
    "build_node",
    "call_op",
    "channel_axis",
    "decode",
    "describe_inputs",
    "handle_spec",
    "list_spec",
    "normalize_axis",
    "op",
    "padding_of",
    "reduced_axes",
    "require",
    "window_padding",
]
