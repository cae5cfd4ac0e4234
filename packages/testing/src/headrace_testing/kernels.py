"""Whose kernels a step uses, for the tests of packages that bring kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import headrace as hr


def uses_kernel(
    fetches: Any,
    op: str,
    package: str,
    feed_dict: Mapping[Any, Any] | None = None,
    *,
    session: hr.Session | None = None,
) -> bool:
    """Whether a step computes all nodes of an op with kernels of a package.

    The step does not run. What runs inside of loops and branches counts, too.

    Args:
        fetches: What the step would fetch.
        op: The type of the op, as in ``"Softplus"``.
        package: The package as it is installed, as in ``"headrace-backend-cpu"``; of a library
            behind a package its own name, as in ``"onednn"``. A kernel that a device made of
            several operations is the device's.
        feed_dict: What the step would be fed: kernels depend on shapes.
        session: Which session would run it; a new one of the default graph if None.

    Raises:
        ValueError: if the step has no node of the op, or nobody can tell yet: the shapes do not
            follow from ``feed_dict``, or the op was simplified away.
    """
    if session is None:
        with hr.Session() as fresh:
            return uses_kernel(fetches, op, package, feed_dict, session=fresh)
    explanation = session.explain(fetches, feed_dict)
    works = [work for part in explanation.walk() for work in part.works]
    found = [work for work in works if any(node.type == op for node in work.ops)]
    if not all(work.package for work in found) or not found:
        seen = sorted({node.type for work in works for node in work.ops})
        what = "is not compiled yet" if found else f"computes {', '.join(seen) or 'nothing'}"
        raise ValueError(f"no kernel for {op} is known: the step {what}; pass feed_dict")
    return all(work.package == package for work in found)
