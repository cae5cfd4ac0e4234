r"""Regular expressions in RE2's syntax, read so that mistakes are refused when a node is built.

Patterns are translated to those of Python's ``re``, which checks the rest; kernels match with a
library that takes linear time. Strings are read as UTF-8, and bytes that are no UTF-8 match
nothing. What RE2 lacks (lookaround, references to groups) is refused. The syntax is
documented at https://github.com/google/re2/wiki/Syntax.
"""

from __future__ import annotations

import functools
import re
import sys

from headrace.errors import AttributeValueError

# Deeper nesting, and longer patterns, are no expressions that anyone wrote.
_MAX_DEPTH = 200
_MAX_LENGTH = 100_000
_MAX_REPEAT = 1000

# What bytes that are no UTF-8 become.
_NO_TEXT = "\\udc80-\\udcff"

_PERL = {"d": "0-9", "w": "0-9A-Za-z_", "s": "\\t\\n\\f\\r "}
# The same classes negated, without surrogates.
_NOT_PERL = {
    "d": "\\x00-/:-\\ud7ff\\ue000-\\U0010ffff",
    "w": "\\x00-/:-@\\[-\\^`\\{-\\ud7ff\\ue000-\\U0010ffff",
    "s": "\\x00-\\x08\\x0b\\x0e-\\x1f!-\\ud7ff\\ue000-\\U0010ffff",
}
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`\\{-~",
    "space": "\\t\\n\\x0b\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_CONTROLS = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}


@functools.lru_cache(maxsize=256)
def compile_pattern(pattern: bytes) -> re.Pattern[str]:
    """Return the compiled expression.

    Raises:
        AttributeValueError: if it is none in RE2's syntax.
    """
    try:
        text = pattern.decode()
    except UnicodeDecodeError:
        raise AttributeValueError(f"the pattern {pattern[:60]!r} is not UTF-8") from None
    if len(text) > _MAX_LENGTH:
        raise AttributeValueError(f"a pattern has at most {_MAX_LENGTH} characters")
    try:
        return re.compile(_Translator(text).run())
    except (re.error, RecursionError, OverflowError) as error:
        raise AttributeValueError(f"the pattern {text[:60]!r} is invalid: {error}") from None


@functools.lru_cache(maxsize=256)
def is_run(pattern: bytes) -> bool:
    """Whether a valid pattern is characters and classes, of which the last may be repeated.

    Nothing that was matched is given back then: whoever searches takes time linear in the text, and
    finds the same. No match is empty.
    """
    translator = _Translator(pattern.decode())
    translator.run()
    return translator.is_run


@functools.lru_cache(maxsize=256)
def parse_rewrite(rewrite: bytes) -> tuple[str | int, ...]:
    r"""Return the parts of what replaces a match: texts, and numbers of groups.

    Raises:
        AttributeValueError: if a backslash is followed by something else than a digit or another.
    """
    parts: list[str | int] = []
    pieces = re.split(r"\\(.?)", rewrite.decode(errors="surrogateescape"), flags=re.DOTALL)
    for i, piece in enumerate(pieces):
        if i % 2 and piece.isascii() and piece.isdigit():
            parts.append(int(piece))
        elif i % 2 and piece != "\\":
            raise AttributeValueError(
                f"the rewrite {rewrite[:60]!r} is invalid: a backslash must be followed by a digit "
                "or another backslash"
            )
        elif piece:
            parts.append(piece)
    return tuple(parts)


def bytes_of(text: str) -> bytes:
    """Return the bytes of a part of a rewrite."""
    return text.encode(errors="surrogateescape")


def text_of(data: bytes) -> str:
    """Return the text that bytes are, of which those that are no UTF-8 match nothing."""
    return data.decode(errors="surrogateescape")


class _Translator:
    """Reads a pattern from left to right, and writes what Python calls it."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.out: list[str] = []
        # Of each open group: the flags before it, and how many inline flags stand open in it.
        self.groups: list[tuple[frozenset[str], list[str]]] = []
        self.flags: frozenset[str] = frozenset()
        self.inline: list[str] = []
        self.repeatable = False
        # Whether what was read is characters and classes, of which the last is repeated at most.
        self.is_run = bool(pattern)

    def run(self) -> str:
        while self.at < len(self.pattern):
            self.step()
        if self.groups:
            raise self.wrong("a '(' is not closed")
        return "".join([*self.out, *(")" for _ in self.inline)])

    def wrong(self, why: str) -> AttributeValueError:
        return AttributeValueError(f"the pattern {self.pattern[:60]!r} is invalid: {why}")

    def take(self, text: str) -> bool:
        found = self.pattern.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def one(self, why: str) -> str:
        if self.at >= len(self.pattern):
            raise self.wrong(why)
        self.at += 1
        return self.pattern[self.at - 1]

    def emit(self, text: str, repeatable: bool = True) -> None:
        self.out.append(text)
        self.repeatable = repeatable

    def step(self) -> None:
        char = self.one("it ends")
        self.is_run = self.is_run and char not in "()|^$*?"
        if char == "\\":
            self.escape()
        elif char == "[":
            self.emit(self.char_class())
        elif char == "(":
            self.open()
        elif char == ")":
            self.close()
        elif char == "|":
            self.emit(")" * len(self.inline) + "|" + "".join(self.inline), repeatable=False)
        elif char == ".":
            self.emit(f"[^{_NO_TEXT}]" if "s" in self.flags else f"[^\\n{_NO_TEXT}]")
        elif char == "^":
            self.emit("(?m:^)" if "m" in self.flags else "(?:\\A)")
        elif char == "$":
            self.emit("(?m:$)" if "m" in self.flags else "(?:\\Z)")
        elif char in "*+?":
            self.repeat(char)
        elif char == "{":
            self.counted()
        else:
            self.emit(re.escape(char))

    def repeat(self, text: str) -> None:
        if not self.repeatable:
            raise self.wrong(f"nothing stands before {text!r} that could be repeated")
        lazy = "?" if self.take("?") else ""
        if self.pattern[self.at : self.at + 1] in ("*", "+", "?"):
            raise self.wrong(f"{text + lazy!r} is followed by another repetition")
        self.emit(text + lazy, repeatable=False)
        maybe_none = text[1:2] == "0"
        self.is_run = self.is_run and self.at == len(self.pattern) and not (lazy or maybe_none)

    def counted(self) -> None:
        match = re.compile(r"(\d+)(,(\d*))?\}", re.ASCII).match(self.pattern, self.at)
        if match is None:
            self.emit("\\{")
            return
        low, high = int(match[1]), int(match[3]) if match[3] else None
        if low > _MAX_REPEAT or (high or 0) > _MAX_REPEAT or (high is not None and high < low):
            raise self.wrong(
                f"'{{{match[0]}' must give an ascending range of at most {_MAX_REPEAT} repetitions"
            )
        self.at = match.end()
        self.repeat("{" + match[0])

    # -- groups

    def open(self) -> None:
        if len(self.groups) >= _MAX_DEPTH:
            raise self.wrong(f"it is nested more than {_MAX_DEPTH} deep")
        if not self.take("?"):
            self.enter("(")
            return
        name = re.compile(r"P?<([A-Za-z_]\w*)>", re.ASCII).match(self.pattern, self.at)
        if name is not None:
            self.at = name.end()
            self.enter(f"(?P<{name[1]}>")
            return
        given = re.compile(r"([imsU]*)(-[imsU]+)?([:)])").match(self.pattern, self.at)
        if given is None:
            shown = self.pattern[self.at - 2 : self.at + 2]
            raise self.wrong(f"{shown!r} is not supported: there are (...), (?:...), (?P<name>...)")
        self.at = given.end()
        off = set(given[2] or "")
        if "U" in given[1] or "U" in off:
            raise self.wrong("the flag U is not supported; write *? and +?")
        flags = (self.flags | set(given[1])) - off
        opening = "(?i:" if "i" in flags else "(?-i:" if "i" in off else "(?:"
        if given[3] == ":":
            self.enter(opening)
        else:
            self.inline.append(opening)
            self.emit(opening, repeatable=False)
        self.flags = frozenset(flags)

    def enter(self, text: str) -> None:
        self.groups.append((self.flags, self.inline))
        self.inline = []
        self.emit(text, repeatable=False)

    def close(self) -> None:
        if not self.groups:
            raise self.wrong("a ')' is not opened")
        self.emit(")" * len(self.inline) + ")")
        self.flags, self.inline = self.groups.pop()

    # -- escapes and classes

    def escape(self) -> None:
        char = self.one("it ends with a backslash")
        self.is_run = self.is_run and char not in "bBAzQ"
        if char in "bB":
            self.emit(f"(?a:\\{char})")
        elif char in "Az":
            self.emit("(?:\\A)" if char == "A" else "(?:\\Z)")
        elif char == "Q":
            end = self.pattern.find("\\E", self.at)
            stop = len(self.pattern) if end < 0 else end
            for literal in self.pattern[self.at : stop]:
                self.emit(re.escape(literal))
            self.at = stop if end < 0 else stop + 2
        elif char != "E":
            members = self.members(char)
            self.emit(f"[{members}]" if members is not None else re.escape(self.literal(char)))

    def members(self, char: str) -> str | None:
        """Return the members of the class that an escape stands for, None where it is a letter."""
        if char in _PERL:
            return _PERL[char]
        if char.lower() in _NOT_PERL:
            return _NOT_PERL[char.lower()]
        if char not in "pP":
            return None
        name = self.one("\\p lacks the name of a class")
        if name == "{":
            end = self.pattern.find("}", self.at)
            if end < 0:
                raise self.wrong("\\p{ lacks its }")
            name = self.pattern[self.at : end]
            self.at = end + 1
        negated = (char == "P") != name.startswith("^")
        found = _category(name.removeprefix("^"), negated)
        if not found:
            raise self.wrong(f"\\p{{{name[:20]}}} is not supported: there are Unicode's categories")
        return found

    def literal(self, char: str) -> str:
        """Return the character that an escape stands for."""
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char == "x":
            return self.hexadecimal()
        octal = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{2}").match(self.pattern, self.at - 1)
        if octal is not None:
            self.at = octal.end()
            return chr(int(octal[0], 8))
        if char.isdigit():
            raise self.wrong(f"references to groups, as \\{char}, are not supported")
        if not char.isascii() or char.isalnum() or char == "_":
            raise self.wrong(f"\\{char} is no escape")
        return char

    def hexadecimal(self) -> str:
        match = re.compile(r"([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\}").match(self.pattern, self.at)
        code = -1 if match is None else int(match[1] or match[2], 16)
        if match is None or code > sys.maxunicode:
            raise self.wrong("\\x takes two digits, or up to six in braces")
        self.at = match.end()
        return chr(code)

    def char_class(self) -> str:
        negated = self.take("^")
        parts: list[str] = []
        first = True
        while first or not self.take("]"):
            posix = re.compile(r"\[:(\^?)(\w+):\]", re.ASCII).match(self.pattern, self.at)
            if posix is not None:
                self.at = posix.end()
                parts.append(self.posix(posix[2], bool(posix[1])))
            else:
                parts.append(self.member())
            first = False
        tail = _NO_TEXT if negated else ""
        return f"[{'^' if negated else ''}{''.join(parts)}{tail}]"

    def posix(self, name: str, negated: bool) -> str:
        members = _POSIX.get(name)
        if members is None:
            raise self.wrong(f"there is no class [:{name[:20]}:]")
        return _complement(members) if negated else members

    def member(self) -> str:
        char = self.one("a '[' is not closed")
        if char == "\\":
            char = self.one("it ends with a backslash")
            members = self.members(char)
            if members is not None:
                return members
            low = self.literal(char)
        else:
            low = char
        rest = self.pattern[self.at : self.at + 2]
        if not rest.startswith("-") or rest in ("-]", "-"):
            return _escaped(low)
        self.at += 1
        char = self.one("a '[' is not closed")
        high = self.literal(self.one("it ends with a backslash")) if char == "\\" else char
        if high < low:
            raise self.wrong(f"the range {low}-{high} runs backwards")
        return f"{_escaped(low)}-{_escaped(high)}"


def _escaped(char: str) -> str:
    return f"\\U{ord(char):08x}"


def _ranges(codes: list[int]) -> str:
    """Return ascending code points as the members of a class."""
    parts = []
    start = 0
    for i, code in enumerate(codes):
        if i + 1 == len(codes) or codes[i + 1] != code + 1:
            parts.append(f"{_escaped(chr(codes[start]))}-{_escaped(chr(code))}")
            start = i + 1
    return "".join(parts)


def _code_points() -> list[int]:
    return [*range(0xD800), *range(0xE000, sys.maxunicode + 1)]


@functools.lru_cache(maxsize=32)
def _category(name: str, negated: bool) -> str:
    """Return the members of a category such as "L" or "Lu"; empty where there is none."""
    if name == "Any":
        return _ranges([] if negated else _code_points())
    if not re.fullmatch("[A-Z][a-z]?", name):
        return ""
    from unicodedata import category

    inside = [code for code in _code_points() if category(chr(code)).startswith(name)]
    if not inside or not negated:
        return _ranges(inside)
    chosen = set(inside)
    return _ranges([code for code in _code_points() if code not in chosen])


@functools.lru_cache(maxsize=32)
def _complement(members: str) -> str:
    inside = re.compile(f"[{members}]")
    return _ranges([code for code in _code_points() if not inside.match(chr(code))])
