"""Translations of TensorFlow's ops of checkpoints and summaries, for graphs that it wrote."""

from __future__ import annotations

from typing import Any

from headrace.extend.ops import call_op
from headrace.extend.translations import TranslationTable

ROWS = TranslationTable()


@ROWS.add("RestoreV2")
def _restore(node: Any) -> Any:
    return list(call_op("RestoreV2", *node.tensors, dtypes=tuple(node.attr("dtypes"))))


@ROWS.add("SaveV2")
def _save(node: Any) -> Any:
    return call_op("SaveV2", *node.tensors[:3], node.tensors[3:])


@ROWS.add("MergeV2Checkpoints")
def _merge(node: Any) -> Any:
    deleted = bool(node.attr("delete_old_dirs", True))
    return call_op("MergeV2Checkpoints", *node.tensors, delete_old_dirs=deleted)


@ROWS.add("ScalarSummary", "HistogramSummary")
def _summary(node: Any) -> Any:
    return call_op(node.op, *node.tensors)


@ROWS.add("MergeSummary")
def _merge_summary(node: Any) -> Any:
    return call_op("MergeSummary", node.tensors)
