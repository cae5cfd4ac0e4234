"""The command line: reads the words, runs a command, and turns mistakes into messages."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Sequence

from headrace.cli import doctor, draw, model, new_plugin, ops, plugins
from headrace.errors import HeadraceError, PluginError
from headrace.plugins.host import host
from headrace.plugins.reserved import OFFICIAL_COMMANDS

# Commands of core; for any other word the plugins are asked.
_OWN = ("doctor", "plugins", "ops", "draw", "new-plugin", "show", "run")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: The words of the command line; those of the process if None.

    Returns:
        The exit code: 0 where all is well, 1 where ``doctor`` found problems, 2 for a mistake in
        the words or the environment.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    code: int
    try:
        if words[:1] == ["run"] and model.names_program(words[1:]):
            # One word runs models and programs; the latter is the part of another package.
            words[0] = "launch"
        if words and not words[0].startswith("-") and words[0] not in _OWN:
            added = host().commands
            if words[0] in added:
                code = host().resolve_command(words[0])(words[1:])
                sys.stdout.flush()
                return code
            if words[0] in OFFICIAL_COMMANDS:
                raise PluginError(_missing(words[0]))
            _parser(words).error(_unknown(words[0], [*_OWN, *added]))
        options = _parser(words).parse_args(words)
        code = options.run(options)
        sys.stdout.flush()
        return code
    except HeadraceError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except BrokenPipeError:
        # The reader, such as head, has seen enough. Python flushes again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    # Plugins are asked only where the list of commands is shown, or a word is none of them.
    own = bool(words) and words[0] in _OWN
    parser = argparse.ArgumentParser(
        prog="python -m headrace",
        description="Tell what is installed, what works, and what ops there are.",
        epilog=None if own else _added(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
    listing.add_argument("--by", metavar="PLUGIN", help="list what a plugin brings for ops")
    listing.set_defaults(
        run=lambda options: ops.run(options.name, by=options.by, as_json=options.json)
    )
    text = "draw a graph, the memory of a step, or the timeline of a step, as SVG"
    drawing = commands.add_parser("draw", help=text, description=f"{text[0].upper()}{text[1:]}.")
    draw.add_arguments(drawing)
    drawing.set_defaults(run=draw.run)
    text = "write a plugin package, documented line by line, that installs and passes its tests"
    writing = commands.add_parser("new-plugin", help=text, description=f"{text.capitalize()}.")
    new_plugin.add_arguments(writing)
    writing.set_defaults(run=new_plugin.run)
    text = "list the graphs and signatures of a saved model, with names, dtypes and shapes"
    showing = commands.add_parser("show", help=text, description=f"{text.capitalize()}.")
    model.add_show_arguments(showing)
    showing.set_defaults(run=model.show)
    text = "call a signature of a saved model with arrays from files; or start a program on ranks"
    running = commands.add_parser("run", help=text, description=f"{text.capitalize()}.")
    model.add_run_arguments(running)
    running.set_defaults(run=model.run)
    return parser


def _added() -> str:
    """Return the list of the commands that plugins add, and of the plugins that are broken."""
    commands = host().commands
    lines = [f"  {name:<20}  {commands.offers[name][0].help}" for name in commands]
    if lines:
        lines.insert(0, "commands of plugins:")
    return "\n".join([*lines, host().broken()]).strip()


def _unknown(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"there is no command {name!r}; {hint}python -m headrace --help lists the commands"


def _missing(name: str) -> str:
    """Return what to do where one of our own packages is not installed, or broken."""
    package = OFFICIAL_COMMANDS[name]
    text = f"the command {name} is added by the package {package}: pip install {package}"
    return "\n".join(filter(None, [text, host().broken()]))
