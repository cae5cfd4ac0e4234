"""Names of summaries: which characters they may have, and the tags that they get."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import headrace as hr
from headrace.errors import AttributeValueError, shown

_ILLEGAL = re.compile(r"[^-/\w.]")
_LOG = logging.getLogger("headrace.train")


def clean_tag(name: str | None) -> str | None:
    """Return a name with ``_`` for every character that names may not have.

    Slashes at its beginning are left out. A name that changes is told in the log.
    """
    if name is None:
        return None
    if not isinstance(name, str):
        raise AttributeValueError(f"the name of a summary is text, got {shown(name)}")
    cleaned = _ILLEGAL.sub("_", name).lstrip("/")
    if cleaned != name:
        _LOG.info("Summary name %s is illegal; using %s instead.", name, cleaned)
    return cleaned


@contextmanager
def summary_scope(
    name: str | None,
    family: str | None = None,
    default_name: str | None = None,
    values: Sequence[Any] | None = None,
) -> Iterator[tuple[str, str]]:
    """Open the name scope of a summary.

    Args:
        name: The summary's name.
        family: What comes before it, in the scope and once more in the tag: TensorBoard groups by
            it.
        default_name: Its name if it has none.
        values: The tensors that it tells of.

    Yields:
        The tag, and the scope, which is the name of the operation.

    Raises:
        AttributeValueError: if it has no name.
    """
    name, family = clean_tag(name), clean_tag(family)
    if name is None and default_name is None:
        raise AttributeValueError("a summary needs a name, got None")
    if name == "":
        raise AttributeValueError("a summary needs a name, got one of no legal characters")
    base = name if family is None else f"{family}/{name}"
    with hr.name_scope(base, default_name, values) as scope:
        tag = scope.rstrip("/")
        yield (tag if family is None else f"{family}/{tag}"), scope
