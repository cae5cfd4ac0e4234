"""What tells Headrace's public names and arguments from TensorFlow 1.15's, in words.

``python -m tests.oracles.signatures`` prints differences without a reason that are no known gaps.
"""

from __future__ import annotations

import ast
import enum
import inspect
import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from .generate_signatures import arguments, written

FOLDER = Path(__file__).parent
MISSING = object()
# One thing under the names that the libraries' classes have.
SYNONYMS = {
    "Zeros": "zeros_initializer",
    "Ones": "ones_initializer",
    "constant_initializer": "Constant",
}
METHODS = ("function", "method", "class")


@dataclass(frozen=True)
class Line:
    """A public name of TensorFlow.

    Attributes:
        kind: of ``generate_signatures``.
        name: with the names of the modules and the class that it is in.
        arguments: the signature as text, where it is called.
        rest: the bases of a class, or the value of a constant.
    """

    kind: str
    name: str
    arguments: str = ""
    rest: str = ""


@dataclass
class Signature:
    """What may be passed: names with their defaults, in order."""

    positional: dict[str, str | None] = field(default_factory=dict)
    named: dict[str, str | None] = field(default_factory=dict)
    star: str = ""
    double_star: str = ""


@dataclass(frozen=True)
class Difference:
    """What differs at a name."""

    name: str
    what: str

    def __str__(self) -> str:
        return f"{self.name}: {self.what}"


@dataclass(frozen=True)
class Reason:
    """Why some differences stay.

    Attributes:
        name: an expression that the whole name matches.
        what: an expression that is found in what differs.
        why: the reason.
    """

    name: str
    what: str
    why: str

    @cached_property
    def expressions(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        """The two expressions, compiled."""
        return re.compile(self.name), re.compile(self.what)

    def explains(self, difference: Difference) -> bool:
        """Whether this is why something differs."""
        name, what = self.expressions
        return bool(name.fullmatch(difference.name) and what.search(difference.what))


def recorded() -> list[Line]:
    """Return the lines of the table."""
    text = (FOLDER / "tensorflow.txt").read_text("utf-8")
    return [_line(line) for line in text.splitlines() if not line.startswith("#")]


def reasons() -> list[Reason]:
    """Return the reasons that are written down."""
    rows = json.loads((FOLDER / "reasons.json").read_text("utf-8"))
    return [Reason(**row) for row in rows]


def gaps() -> set[str]:
    """Return the differences that are known to be missing yet, as they are told."""
    lines = (FOLDER / "gaps.txt").read_text("utf-8").splitlines()
    return {line for line in lines if not line.startswith("#")}


def _line(line: str) -> Line:
    kind, rest = line.split(" ", 1)
    if " = " in rest and kind in ("constant", "alias"):
        name, value = rest.split(" = ", 1)
        return Line(kind, name, rest=value)
    if "(" not in rest:
        return Line(kind, rest)
    called, between, bases = rest.partition(") < ")
    name, bracket, inside = called.partition("(")
    return Line(kind, name, bracket + inside + between[:1], bases)


def parsed(text: str) -> Signature:
    """Return what a signature's text says."""
    tree = ast.parse(f"def f{text}: ...").body[0]
    assert isinstance(tree, ast.FunctionDef)
    names = [argument.arg for argument in [*tree.args.posonlyargs, *tree.args.args]]
    defaults = [ast.unparse(value) for value in tree.args.defaults]
    known = [None] * (len(names) - len(defaults)) + defaults
    named = zip(tree.args.kwonlyargs, tree.args.kw_defaults, strict=True)
    return Signature(
        dict(zip(names, known, strict=True)),
        {argument.arg: value and ast.unparse(value) for argument, value in named},
        tree.args.vararg.arg if tree.args.vararg else "",
        tree.args.kwarg.arg if tree.args.kwarg else "",
    )


def ours(value: Any, *, bound: bool) -> Signature | None:
    """Return the signature of one of Headrace's callables; None where Python knows none.

    Args:
        value: the callable.
        bound: whether its first parameter is filled in by a call.
    """
    if isinstance(value, enum.EnumMeta):
        # Members are found by value, whatever this version of Python says of it.
        return parsed("(value)")
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return None
    parameters = parameters[1:] if bound else parameters
    kinds = inspect.Parameter
    by_position = [
        p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    ]
    by_name = [p for p in parameters if p.kind == kinds.KEYWORD_ONLY]
    star = next((p.name for p in parameters if p.kind == kinds.VAR_POSITIONAL), None)
    double_star = next((p.name for p in parameters if p.kind == kinds.VAR_KEYWORD), None)
    return parsed(
        arguments(
            [p.name for p in by_position],
            [p.default for p in by_position if p.default is not p.empty],
            star,
            {p.name: p.default for p in by_name if p.default is not p.empty},
            [p.name for p in by_name],
            double_star,
        )
    )


def told_apart(theirs: Signature, found: Signature) -> list[str]:
    """Return how a signature departs from TensorFlow's, so far as a call could notice."""
    every = {**found.positional, **found.named}
    lost = [n for n in [*theirs.positional, *theirs.named] if n not in every]
    what = [f"no argument {name}" for name in lost if not found.double_star]
    kept = [name for name in theirs.positional if name not in lost]
    at = list(found.positional)
    if kept != at[: len(kept)] and not (found.star and kept[: len(at)] == at):
        what.append(f"order {', '.join(at) or 'none'}; TensorFlow's {', '.join(kept)}")
    for name, default in {**theirs.positional, **theirs.named}.items():
        if default and name in every and _default(every[name]) != _default(default):
            ours = "required" if every[name] is None else f"{every[name]} by default"
            what.append(f"{name} is {ours}, TensorFlow's {default}")
    more = [
        n for n, d in every.items() if d is None and n not in {**theirs.positional, **theirs.named}
    ]
    if more and not theirs.star:
        what.append(f"asks for {', '.join(more)}")
    if theirs.star and not found.star:
        what.append(f"no *{theirs.star}")
    if theirs.double_star and not found.double_star:
        what.append(f"no **{theirs.double_star}")
    return what


def _default(text: str | None) -> str | None:
    if text is None:
        return None
    if re.fullmatch(r"-?[0-9.e+-]+", text):
        return repr(float(text))
    return SYNONYMS.get(text, text)


def found_at(root: Any, name: str) -> Any:
    """Return what a library has under a name, or ``MISSING``."""
    for part in name.split("."):
        root = getattr(root, part, MISSING)
    return root


def differences(library: Any, lines: list[Line]) -> list[Difference]:
    """Return all differences of a library from the recorded names, a missing module as one."""
    found: list[Difference] = []
    gone: set[str] = set()
    for line in lines:
        above = line.name.rpartition(".")[0]
        if above in gone:
            gone.add(line.name)
            continue
        if line.kind == "property" and _is_told(found_at(library, above), line.name):
            continue
        if found_at(library, line.name) is MISSING:
            gone.add(line.name)
            found.append(Difference(line.name, f"missing {line.kind}"))
        else:
            found += [Difference(line.name, what) for what in _differences(library, line)]
    return found


def _is_told(owner: Any, name: str) -> bool:
    """Whether the documentation of a class lists an attribute, which its instances then have."""
    last = name.rpartition(".")[2]
    documents = [cls.__doc__ or "" for cls in getattr(owner, "__mro__", ())]
    return any(re.search(rf"Attributes:.*\n +{last}: ", text, re.DOTALL) for text in documents)


def _differences(library: Any, line: Line) -> list[str]:
    value = found_at(library, line.name)
    if line.kind == "alias":
        same = found_at(library, line.rest) in (value, MISSING)
        return [] if same else [f"not the same as {line.rest}"]
    if line.kind == "constant":
        simple = isinstance(value, (type(None), bool, int, float, str, bytes, tuple))
        text = written(value)
        same = not simple or _default(text) == _default(line.rest)
        return [] if same else [f"is {text}, TensorFlow's {line.rest}"]
    if line.kind in ("module", "message"):
        return []
    if line.kind == "property":
        return ["called, TensorFlow's is a property"] if inspect.isroutine(value) else []
    if not callable(value):
        return [f"not called, TensorFlow's is a {line.kind}"]
    what = _bases(library, line, value) if line.kind == "class" else []
    signature = ours(value, bound=_is_bound(library, line.name))
    if signature is None:
        return what
    return what + told_apart(parsed(line.arguments), signature)


def _bases(library: Any, line: Line, value: Any) -> list[str]:
    if not isinstance(value, type):
        return ["no class"]
    names = [name for name in line.rest.split(", ") if name]
    bases = {name: found_at(library, name) for name in names}
    return [
        f"not derived from {name}"
        for name, base in bases.items()
        if isinstance(base, type) and not issubclass(value, base)
    ]


def _is_bound(library: Any, name: str) -> bool:
    above, _, last = name.rpartition(".")
    owner = found_at(library, above) if above else library
    if not isinstance(owner, type):
        return False
    return inspect.isfunction(inspect.getattr_static(owner, last, None))
