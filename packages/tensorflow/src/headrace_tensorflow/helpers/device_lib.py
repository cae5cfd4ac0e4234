"""``client.device_lib``: the devices of this process."""

from __future__ import annotations

from typing import Any

import headrace as hr


def list_local_devices(session_config: Any = None) -> list[Any]:
    """Return the devices that a session of this process has.

    Args:
        session_config: The session's ``ConfigProto``, or None.

    Returns:
        Descriptions with ``name``, ``device_type`` and ``memory_limit_bytes``.
    """
    with hr.Session(graph=hr.Graph(), config=session_config) as session:
        return list(session.list_devices())
