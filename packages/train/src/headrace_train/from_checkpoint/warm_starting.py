"""Starting to train with the values of another model's variables."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

import headrace as hr
from headrace import Variable
from headrace.errors import AttributeValueError, listing, shown
from headrace.extend.arguments import mapping
from headrace_train.checkpoint.opening import open_checkpoint
from headrace_train.from_checkpoint.assignments import Assignment, check
from headrace_train.from_checkpoint.initializing import initialize
from headrace_train.from_checkpoint.reading import checkpoint_of
from headrace_train.from_checkpoint.vocabularies import VocabInfo, prepared

_log = logging.getLogger("headrace.train")


def warm_start(
    ckpt_to_initialize_from: str | os.PathLike[str],
    vars_to_warm_start: str | Sequence[str] | Sequence[Variable] | None = ".*",
    var_name_to_vocab_info: Mapping[str, VocabInfo] | None = None,
    var_name_to_prev_var_name: Mapping[str, str] | None = None,
) -> None:
    """Let variables be initialized with those of a model that was trained before.

    As with ``init_from_checkpoint``, the values are read when the initializers run.

    Args:
        ckpt_to_initialize_from: The prefix of a checkpoint, ours or one of TensorFlow's, or a
            folder, whose latest is meant.
        vars_to_warm_start: Which variables: a regular expression, which the names of trainable
            variables must match at their beginning; a list of such, for all global variables; a
            list of variables; or None for those of ``var_name_to_vocab_info`` alone.
        var_name_to_vocab_info: For names of variables that have a row or column for each word of a
            vocabulary, the old and the new one: values go with their words.
        var_name_to_prev_var_name: For names of variables their names in the checkpoint, where
            these are others.

    Raises:
        AttributeValueError: if variables are chosen by something else, or one of the dicts has a
            name that is none of them.
        CheckpointNotFoundError: if there is no such checkpoint, or variables are not in it.
        CheckpointMismatchError: if dtypes or shapes differ.
    """
    grouped = _grouped(vars_to_warm_start)
    vocabularies = mapping(var_name_to_vocab_info, "var_name_to_vocab_info")
    earlier = mapping(var_name_to_prev_var_name, "var_name_to_prev_var_name")
    checkpoint = checkpoint_of(ckpt_to_initialize_from)
    with open_checkpoint(checkpoint) as opened:
        chosen = {name for name in grouped if vars_to_warm_start or name in vocabularies}
        plain = [
            Assignment(earlier.get(name) or name, tuple(grouped[name]))
            for name in sorted(chosen - set(vocabularies))
        ]
        for assignment in plain:
            check(assignment, opened)
        _refuse_unused("var_name_to_prev_var_name", earlier, grouped)
        _refuse_unused("var_name_to_vocab_info", vocabularies, grouped)
        ready = []
        for name in sorted(chosen & set(vocabularies)):
            variables, tensor = tuple(grouped[name]), earlier.get(name) or name
            ready.append(prepared(variables, checkpoint, opened, tensor, vocabularies[name]))
    for apply in ready:
        apply()
    initialize(checkpoint, plain)
    _log.info("%d variables start with the values of %s", len(chosen), checkpoint)


def _grouped(chosen: Any) -> dict[str, list[Variable]]:
    """Return the variables that are chosen by name; parts of one are under its name."""
    keys = hr.GraphKeys
    if chosen is None or isinstance(chosen, str):
        found = hr.get_collection(keys.TRAINABLE_VARIABLES, scope=chosen)
    elif not isinstance(chosen, list | tuple):
        raise AttributeValueError(
            f"vars_to_warm_start must be a string or a list, got {shown(chosen)}"
        )
    elif all(isinstance(item, str) for item in chosen):
        found = [v for name in chosen for v in hr.get_collection(keys.GLOBAL_VARIABLES, scope=name)]
    elif all(isinstance(item, Variable) for item in chosen):
        found = list(chosen)
    else:
        kinds = sorted({type(item).__name__ for item in chosen})
        raise AttributeValueError(
            "a list of vars_to_warm_start must be all variables or all strings, got "
            f"{listing(kinds)}"
        )
    grouped: dict[str, list[Variable]] = {}
    for variable in found:
        info = variable.save_slice_info
        parts = grouped.setdefault(variable.op_name if info is None else info.full_name, [])
        if not any(variable is part for part in parts):
            parts.append(variable)
    return grouped


def _refuse_unused(label: str, given: Mapping[str, Any], grouped: Mapping[str, Any]) -> None:
    unused = [name for name in given if name not in grouped]
    if unused:
        raise AttributeValueError(
            f"{label} has names of no variable that is chosen: {listing(unused)}; those are "
            f"{listing(grouped, 12)}"
        )
