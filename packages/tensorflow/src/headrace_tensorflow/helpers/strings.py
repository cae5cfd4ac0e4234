"""``ops.ragged.ragged_string_ops``: functions of strings that return ragged tensors."""

from __future__ import annotations

from typing import Any

import headrace as hr


def string_split_v2(
    input: Any,
    sep: Any = None,
    maxsplit: int = -1,
    name: str | None = None,
) -> Any:
    """Split strings at a separator, into a tensor with one axis more, which is ragged.

    Args:
        input: [n...], string, a tensor or a ragged one.
        sep: The separator; runs of white space if it is None or empty.
        maxsplit: How often to split at most; -1 for no limit.
        name: The name of the scope.

    Returns:
        [n..., pieces], string; a dense vector for a scalar.
    """
    with hr.name_scope(name, "StringSplit", [input]):
        if not isinstance(input, hr.RaggedTensor):
            input = hr.convert_to_tensor(input, hr.string)
        split: Any = hr.strings.split  # type: ignore[attr-defined]
        return split(input, sep, maxsplit, result_type="RaggedTensor")
