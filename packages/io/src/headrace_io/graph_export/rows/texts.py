"""Operations on strings."""

from __future__ import annotations

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


@ROWS.add("StringJoin")
def _join(node: ExportedNode) -> str:
    count = len(node.inputs)
    return node.emit("StringJoin", *node.inputs, N=count, separator=node.attr("separator"))
