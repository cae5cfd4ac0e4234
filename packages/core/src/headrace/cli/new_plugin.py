"""``python -m headrace new-plugin NAME``: writes a package that installs and passes its tests."""

from __future__ import annotations

import argparse
import keyword
import re
from importlib.resources import files
from pathlib import Path

import headrace
from headrace.errors import ConfigError, shown
from headrace.graph.schema import OPS
from headrace.plugins.host import host
from headrace.version import __version__

# File of the template -> where it goes.
_FILES = {
    "pyproject.toml.txt": "pyproject.toml",
    "README.md.txt": "README.md",
    "gitignore.txt": ".gitignore",
    "module.py.txt": "src/headrace_@name@/__init__.py",
    "test.py.txt": "tests/test_@name@.py",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the words that the command takes."""
    parser.add_argument("name", help="the plugin's name, as in soft_clip: hr.soft_clip, SoftClip")
    parser.add_argument(
        "--into", default=".", metavar="FOLDER", help="where the package's folder goes (default: .)"
    )


def run(options: argparse.Namespace) -> int:
    """Write the package, and say what to do with it.

    Raises:
        ConfigError: if the name cannot be one, is taken, or the folder exists or cannot be
            written; nothing is written then.
    """
    name: str = options.name
    type_name = _checked(name)
    folder = Path(options.into) / f"headrace-{name}"
    if folder.exists():
        raise ConfigError(f"{folder} exists already: choose another name, or --into FOLDER")
    words = {
        "@name@": name,
        "@Op@": type_name,
        "@version@": __version__,
        "@api@": str(_api_version()),
    }
    template = files("headrace.cli") / "plugin_template"
    written = {
        _filled(path, words): _filled((template / source).read_text("utf-8"), words)
        for source, path in _FILES.items()
    }
    try:
        for path, text in written.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {error.filename}: {error.strerror}") from error
    for path in written:
        print(folder / path)
    print(
        f"\nNext, in {folder}:\n  pip install -e '.[test]'\n  python -m headrace plugins\n  pytest"
    )
    return 0


def _filled(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def _checked(name: str) -> str:
    """Return the type name of the op that goes with a plugin's name."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or keyword.iskeyword(name):
        raise ConfigError(
            f"a plugin's name is lower-case words of letters and digits joined by _, as in "
            f"soft_clip, got {shown(name)}"
        )
    type_name = "".join(word.capitalize() for word in name.split("_"))
    host().declare_ops()
    taken = OPS.get(type_name)
    if taken is not None:
        raise ConfigError(f"an op {type_name!r} is declared at {taken.where}: choose another name")
    if name in dir(headrace) or name in {state.name for state in host().plugins()}:
        raise ConfigError(f"the name {name!r} is taken: choose another one")
    return type_name


def _api_version() -> int:
    # lazy: only the command that writes a plugin needs the door
    from headrace.extend import API_VERSION

    return API_VERSION
