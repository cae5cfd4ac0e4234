"""Whether steps of several threads have run concurrently in this process."""

from __future__ import annotations

from typing import final


@final
class Abreast:
    """What is known of steps that run at one time.

    Such steps share the cores, in parts that differ from run to run: while one reads, another
    computes. Whoever divides work by cores may do so as it goes then.

    Attributes:
        seen: Whether a step has begun while another one was under way. It stays so.
    """

    __slots__ = ("seen",)

    def __init__(self) -> None:
        self.seen = False


ABREAST = Abreast()
