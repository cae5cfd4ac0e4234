"""The session in which checkpoints of objects are saved and restored."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace.errors import FailedPreconditionError


def session_or_default(session: Any) -> Any:
    """Return a session, the default one if None.

    Raises:
        FailedPreconditionError: if there is none.
    """
    found = hr.get_default_session() if session is None else session
    if found is None:
        raise FailedPreconditionError(
            "there is no default session: pass session=, or call it in a block "
            "`with hr.Session() as session:`"
        )
    return found
