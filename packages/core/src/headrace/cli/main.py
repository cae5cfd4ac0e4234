"""The command line: reads the words, runs a command, and turns mistakes into messages."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from headrace.cli import doctor, ops, plugins
from headrace.errors import HeadraceError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: The words of the command line; those of the process if None.

    Returns:
        The exit code: 0 where all is well, 1 where ``doctor`` found problems, 2 for a mistake in
        the words or the environment.
    """
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except HeadraceError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except BrokenPipeError:
        # The reader, such as head, has seen enough. Python flushes again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m headrace",
        description="Tell what is installed, what works, and what ops there are.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        command.add_argument("--json", action="store_true", help="print JSON")
        return command

    add(
        "doctor", "report on packages, plugins, devices and libraries; exit code 1 for problems"
    ).set_defaults(run=lambda options: doctor.run(as_json=options.json))
    add("plugins", "list the plugins, with the reasons of those that are broken").set_defaults(
        run=lambda options: plugins.run(as_json=options.json)
    )
    listing = add("ops", "list the ops, the devices that have kernels for them, and gradients")
    listing.add_argument("name", nargs="?", help="tell all about one op or function")
    listing.set_defaults(run=lambda options: ops.run(options.name, as_json=options.json))
    return parser
