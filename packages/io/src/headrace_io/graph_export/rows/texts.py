"""Operations on strings."""

from __future__ import annotations

import headrace as hr
from headrace_io.graph_export.node import ExportedNode, ExportTable

ROWS = ExportTable()

ROWS.same("AsString", attrs="precision scientific shortest width fill")
ROWS.same("DecodeBase64 StringStrip", types="")
ROWS.same("EncodeBase64", types="", attrs="pad")
ROWS.same("RegexFullMatch", types="")
ROWS.same("StringLength", types="", attrs="unit")
ROWS.same("StringLower StringUpper", types="", attrs="encoding")
ROWS.same("StringToHashBucketFast StringToHashBucket", types="", attrs="num_buckets")
ROWS.same("StringToNumber", types="", attrs="out_type")
ROWS.same("StringSplitV2", types="", attrs="maxsplit", outputs=3)
ROWS.same("StringSplit", types="", attrs="skip_empty", outputs=3)
ROWS.same("Substr", types="- T", attrs="unit")
ROWS.same("RegexReplace", types="", attrs="replace_global")


@ROWS.add("SparseCross")
def _sparse_cross(node: ExportedNode) -> list[str]:
    count = node.op.arity[0]
    kinds = [t.dtype for t in node.op.inputs]
    sparse, dense = kinds[count : 2 * count], kinds[3 * count :]
    key = node.attr("hash_key")
    name = node.emit(
        "SparseCross",
        *node.inputs,
        N=count,
        sparse_types=sparse,
        dense_types=dense,
        hashed_output=node.attr("hashed_output"),
        num_buckets=node.attr("num_buckets"),
        hash_key=key - 2**64 if key >= 2**63 else key,
        out_type=node.op.outputs[1].dtype,
        internal_type=hr.int64 if hr.int64 in (*sparse, *dense) else hr.string,
    )
    return [name, f"{name}:1", f"{name}:2"]


@ROWS.add("StringJoin")
def _join(node: ExportedNode) -> str:
    count = len(node.inputs)
    return node.emit("StringJoin", *node.inputs, N=count, separator=node.attr("separator"))
