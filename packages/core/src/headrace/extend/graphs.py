"""What graphs are made of: tensors, operations, functions, the scopes in force."""

from headrace.graph.attributes import decode as decode_attribute
from headrace.graph.attributes import encode as encode_attribute
from headrace.graph.attributes import fits as attribute_fits
from headrace.graph.convert import (
    convert_to_tensor,
    is_python_literal,
    to_array,
)
from headrace.graph.copying import (
    copied,
    identity_after,
    with_inputs,
)
from headrace.graph.creation_site import (
    pinned_site,
    user_site,
)
from headrace.graph.function import (
    MAX_NESTED,
    Function,
    functions_in,
    functions_of,
    graphs_around,
    nested_deeper,
)
from headrace.graph.graph import (
    Graph,
    unfinalize,
)
from headrace.graph.indexed_slices import (
    IndexedSlices,
)
from headrace.graph.operation import (
    Operation,
)
from headrace.graph.scopes import (
    colocate_with,
    control_dependencies,
    current_scope,
    device,
    get_default_graph,
    gradient_override_map,
    inside,
    name_scope,
    use_graph,
)
from headrace.graph.sparse_tensor import (
    SparseTensor,
)
from headrace.graph.structure import (
    flatten,
    pack,
)
from headrace.graph.tensor import (
    Tensor,
)
from headrace.passes.inline_calls import (
    check_repeated,
)
from headrace.runtime.garbage_collection import (
    unhindered,
)
from headrace.topological_sort import (
    CycleError,
    in_order,
)

__all__ = [
    "MAX_NESTED",
    "CycleError",
    "Function",
    "Graph",
    "IndexedSlices",
    "Operation",
    "SparseTensor",
    "Tensor",
    "attribute_fits",
    "check_repeated",
    "colocate_with",
    "control_dependencies",
    "convert_to_tensor",
    "copied",
    "current_scope",
    "decode_attribute",
    "device",
    "encode_attribute",
    "flatten",
    "functions_in",
    "functions_of",
    "get_default_graph",
    "gradient_override_map",
    "graphs_around",
    "identity_after",
    "in_order",
    "inside",
    "is_python_literal",
    "name_scope",
    "nested_deeper",
    "pack",
    "pinned_site",
    "to_array",
    "unfinalize",
    "unhindered",
    "use_graph",
    "user_site",
    "with_inputs",
]
