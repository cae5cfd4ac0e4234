"""``tf.app`` and ``tf.flags``: absl's, as in TensorFlow 1.15."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NoReturn

import absl.app
from absl import flags as flags


def run(main: Callable[..., Any] | None = None, argv: Sequence[str] | None = None) -> NoReturn:
    """Run a program with its flags read, and exit with what it returns.

    Args:
        main: Takes the arguments that are no flags; ``main`` of the program if None.
        argv: The words of the command line, with the name of the program.
    """
    main = main or sys.modules["__main__"].main
    words = None if argv is None else list(argv)
    absl.app.run(main=main, argv=words, flags_parser=_parsed)
    raise SystemExit(0)


def _parsed(words: Sequence[str]) -> list[str]:
    # Flags that nobody defined are arguments, as ``tf.app.run`` has it.
    return list(flags.FLAGS(words, known_only=True))


app = SimpleNamespace(run=run, flags=flags)
