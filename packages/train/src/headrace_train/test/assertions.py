"""Assertions about texts, sequences, messages and structures, under absl's names."""

from __future__ import annotations

import io
import itertools
import json
import re
import subprocess
import sys
import unittest
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from headrace.errors import shown, told
from headrace.extend.arguments import items


class MoreAssertions(unittest.TestCase):
    """What test cases of TensorFlow's programs have from absl besides what ``unittest`` has."""

    def _require(self, holds: Any, text: str, msg: Any = None) -> None:
        if not holds:
            raise self.failureException(text if not msg else f"{text}\n{told(msg)}")

    def fail(self, msg: Any = None, user_msg: Any = None) -> Any:
        """Fail.

        Args:
            msg: Why.
            user_msg: More to say.
        """
        return super().fail(msg if user_msg is None else f"{msg} {user_msg}")

    # -- texts

    def assertStartsWith(self, actual: Any, expected_start: Any, msg: Any = None) -> None:
        """Fail unless a string starts with another."""
        starts = actual.startswith(expected_start)
        self._require(starts, f"{actual!r} does not start with {expected_start!r}", msg)

    def assertNotStartsWith(self, actual: Any, unexpected_start: Any, msg: Any = None) -> None:
        """Fail if a string starts with another."""
        starts = actual.startswith(unexpected_start)
        self._require(not starts, f"{actual!r} starts with {unexpected_start!r}", msg)

    def assertEndsWith(self, actual: Any, expected_end: Any, msg: Any = None) -> None:
        """Fail unless a string ends with another."""
        ends = actual.endswith(expected_end)
        self._require(ends, f"{actual!r} does not end with {expected_end!r}", msg)

    def assertNotEndsWith(self, actual: Any, unexpected_end: Any, msg: Any = None) -> None:
        """Fail if a string ends with another."""
        ends = actual.endswith(unexpected_end)
        self._require(not ends, f"{actual!r} ends with {unexpected_end!r}", msg)

    def assertRegexMatch(
        self, actual_str: Any, regexes: Sequence[Any], message: Any = None
    ) -> None:
        """Fail unless one of several expressions is found in a string."""
        if isinstance(regexes, str | bytes):
            self.fail("regexes is a string; use assertRegex instead")
        self._require(regexes, "there is no expression to look for")
        found = any(re.search(regex, actual_str, re.MULTILINE) for regex in regexes)
        self._require(found, f"{actual_str!r} matches none of {list(regexes)}", message)

    def assertContainsInOrder(self, strings: Iterable[str], target: str, msg: Any = None) -> None:
        """Fail unless strings are found in a text, one after the other."""
        place = 0
        for text in [strings] if isinstance(strings, str) else strings:
            found = target.find(text, place)
            self._require(found >= 0, f"{text!r} is not in {target!r} in this order", msg)
            place = found + len(text)

    def assertUrlEqual(self, a: str, b: str, msg: Any = None) -> None:
        """Fail unless two addresses are equal but for the order of their queries."""
        one, two = urlsplit(a), urlsplit(b)
        for part in ("scheme", "netloc", "path", "fragment"):
            self.assertEqual(getattr(one, part), getattr(two, part), msg)
        self.assertEqual(sorted(parse_qsl(one.query)), sorted(parse_qsl(two.query)), msg)

    def assertJsonEqual(self, first: str, second: str, msg: Any = None) -> None:
        """Fail unless two texts are equal JSON."""
        self.assertEqual(json.loads(first), json.loads(second), msg)

    def assertMultiLineEqual(self, first: Any, second: Any, msg: Any = None, **kwargs: Any) -> None:
        """Fail unless two texts are equal, and show where they differ.

        Args:
            first: A text.
            second: Another one.
            msg: Added to the message.
            **kwargs: Ignored.
        """
        del kwargs
        super().assertMultiLineEqual(first, second, msg)

    # -- sequences

    def assertSameElements(
        self, expected_seq: Iterable[Any], actual_seq: Iterable[Any], msg: Any = None
    ) -> None:
        """Fail unless two sequences hold the same elements, however often."""
        one, two = items(expected_seq, "expected_seq"), items(actual_seq, "actual_seq")
        self._require(
            all(x in two for x in one) and all(x in one for x in two),
            f"{shown(one)} and {shown(two)} do not hold the same elements",
            msg,
        )

    def assertSequenceAlmostEqual(
        self,
        expected_seq: Sequence[Any],
        actual_seq: Sequence[Any],
        places: int | None = None,
        msg: Any = None,
        delta: float | None = None,
    ) -> None:
        """Fail unless two sequences of numbers are as long, and nearly equal."""
        self.assertEqual(len(expected_seq), len(actual_seq), msg)
        for one, two in zip(expected_seq, actual_seq, strict=True):
            # unittest takes one of places and delta.
            more: dict[str, Any] = {"places": places} if delta is None else {"delta": delta}
            self.assertAlmostEqual(one, two, msg=msg, **more)

    def assertSequenceStartsWith(
        self, prefix: Sequence[Any], whole: Sequence[Any], msg: Any = None
    ) -> None:
        """Fail unless a sequence begins with others' elements."""
        self._require(len(prefix), "the prefix is empty", msg)
        self.assertSequenceEqual(list(prefix), list(whole)[: len(prefix)], msg)

    def assertContainsSubset(
        self, expected_subset: Iterable[Any], actual_set: Iterable[Any], msg: Any = None
    ) -> None:
        """Fail unless all of some elements are in a set."""
        lost = set(expected_subset) - set(actual_set)
        self._require(not lost, f"not in the set: {shown(sorted(lost, key=str))}", msg)

    def assertNoCommonElements(
        self, expected_seq: Iterable[Any], actual_seq: Iterable[Any], msg: Any = None
    ) -> None:
        """Fail if an element is in both of two sequences."""
        common = set(expected_seq) & set(actual_seq)
        self._require(not common, f"in both: {shown(sorted(common, key=str))}", msg)

    def assertContainsExactSubsequence(
        self, container: Sequence[Any], subsequence: Sequence[Any], msg: Any = None
    ) -> None:
        """Fail unless elements are found in a sequence, next to each other and in order."""
        wanted, whole = items(subsequence, "subsequence"), items(container, "container")
        places = range(len(whole) - len(wanted) + 1)
        found = any(whole[at : at + len(wanted)] == wanted for at in places)
        self._require(found, f"{shown(wanted)} is not in {shown(whole)}", msg)

    def assertContainsSubsequence(
        self, container: Iterable[Any], subsequence: Iterable[Any], msg: Any = None
    ) -> None:
        """Fail unless elements are found in a sequence, in order."""
        rest = iter(container)
        for item in subsequence:
            self._require(any(x == item for x in rest), f"{shown(item)} is not there in order", msg)

    def assertTotallyOrdered(self, *groups: Iterable[Any], **kwargs: Any) -> None:
        """Fail unless all of a group are less than all of those after it, and equal each other.

        Args:
            *groups: Groups of values.
            **kwargs: ``msg``, added to the message.
        """
        msg = kwargs.get("msg")
        listed = [list(group) for group in groups]
        for earlier, later in itertools.combinations(listed, 2):
            for small, large in itertools.product(earlier, later):
                self._require(small < large and large > small, f"{small!r} is not < {large!r}", msg)
                self._require(small != large, f"{small!r} equals {large!r}", msg)
        for group in listed:
            for one, two in itertools.product(group, group):
                same = one == two and one <= two and one >= two
                self._require(same, f"{one!r} does not equal {two!r}", msg)

    def assertDictEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        """Fail unless two dicts are equal, and show where they differ."""
        super().assertDictEqual(a, b, msg)

    def assertSameStructure(
        self, a: Any, b: Any, aname: str = "a", bname: str = "b", msg: Any = None
    ) -> None:
        """Fail unless two structures of lists, tuples and dicts are equal.

        Args:
            a: A structure.
            b: Another one.
            aname: What the message calls the first.
            bname: What it calls the second.
            msg: Added to the message.
        """
        for text in _differences(a, b, aname, bname):
            self._require(False, text, msg)

    # -- messages

    def assertProtoEquals(
        self, expected_message_maybe_ascii: Any, message: Any, msg: Any = None
    ) -> None:
        """Fail unless a message equals another, or one that a text describes.

        Args:
            expected_message_maybe_ascii: A message, or its text.
            message: A message.
            msg: Added to the message of the failure.
        """
        wanted = expected_message_maybe_ascii
        if isinstance(wanted, str):
            # lazy: only tests of messages need Protocol Buffers
            from google.protobuf import text_format

            wanted = text_format.Parse(wanted, type(message)())
        self._require(wanted == message, f"messages differ:\n{wanted}\nand\n{message}", msg)

    def assertProtoEqualsVersion(
        self,
        expected: Any,
        actual: Any,
        producer: int = 134,
        min_consumer: int = 0,
        msg: Any = None,
    ) -> None:
        """Fail unless a graph's message equals a text, with versions.

        Args:
            expected: The text, without versions.
            actual: The message.
            producer: The version that wrote it.
            min_consumer: The least version that may read it.
            msg: Added to the message of the failure.
        """
        least = f"min_consumer: {min_consumer}" if min_consumer else ""
        versions = f"versions {{ producer: {producer} {least} }}"
        self.assertProtoEquals(f"{versions}\n{expected}", actual, msg=msg)

    # -- errors, programs and streams

    def assertRaisesWithLiteralMatch(
        self,
        expected_exception: type[BaseException],
        expected_exception_message: str,
        callable_obj: Callable[..., Any] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> AbstractContextManager[None] | None:
        """Fail unless an error with a message is raised, by a function or by a block.

        Args:
            expected_exception: The kind of the error.
            expected_exception_message: All of its message.
            callable_obj: The function; None to return a context manager for a block.
            *args: Arguments of the function.
            **kwargs: Arguments by name.
        """
        block = self._raising(expected_exception, expected_exception_message)
        if callable_obj is None:
            return block
        with block:
            callable_obj(*args, **kwargs)
        return None

    @contextmanager
    def _raising(self, kind: type[BaseException], text: str) -> Iterator[None]:
        try:
            yield
        except kind as error:
            self._require(str(error) == text, f"expected the message {text!r}, got {str(error)!r}")
            return
        raise self.failureException(f"{kind.__name__} not raised")

    def assertCommandSucceeds(
        self,
        command: Any,
        regexes: Sequence[bytes] = (b"",),
        env: Mapping[str, str] | None = None,
        close_fds: bool = True,
        msg: Any = None,
    ) -> None:
        """Fail unless a program ends well, and prints what one of several expressions finds.

        Args:
            command: The program with its arguments, or a line for the shell.
            regexes: Expressions for what it prints.
            env: Its environment; that of this process if None.
            close_fds: Whether it gets no open files of this process.
            msg: Added to the message.
        """
        code, output = _run(command, env, close_fds)
        self._require(code == 0, f"the program failed with {code}:\n{output!r}", msg)
        self.assertRegexMatch(output, [_as_bytes(regex) for regex in regexes], msg)

    def assertCommandFails(
        self,
        command: Any,
        regexes: Sequence[bytes],
        env: Mapping[str, str] | None = None,
        close_fds: bool = True,
        msg: Any = None,
    ) -> None:
        """Fail unless a program fails, and prints what one of several expressions finds.

        Args:
            command: The program with its arguments, or a line for the shell.
            regexes: Expressions for what it prints.
            env: Its environment; that of this process if None.
            close_fds: Whether it gets no open files of this process.
            msg: Added to the message.
        """
        code, output = _run(command, env, close_fds)
        self._require(code != 0, f"the program did not fail:\n{output!r}", msg)
        self.assertRegexMatch(output, [_as_bytes(regex) for regex in regexes], msg)

    @contextmanager
    def captureWritesToStream(self, stream: Any) -> Iterator[Any]:
        """Yield what has a method ``contents()``: what the block writes to ``stream``.

        Args:
            stream: ``sys.stdout`` or ``sys.stderr``.
        """
        name = "stdout" if stream is sys.stdout else "stderr"
        if stream is not getattr(sys, name):
            raise ValueError(f"only sys.stdout and sys.stderr can be captured, got {shown(stream)}")
        written = _Written()
        setattr(sys, name, written)
        try:
            yield written
        finally:
            setattr(sys, name, stream)


class _Written(io.StringIO):
    def contents(self) -> str:
        """Return what was written."""
        return self.getvalue()


def _differences(a: Any, b: Any, one: str, two: str) -> Iterator[str]:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in a.keys() ^ b.keys():
            holder = one if key in a else two
            yield f"{holder} alone has {key!r}"
        for key in a.keys() & b.keys():
            yield from _differences(a[key], b[key], f"{one}[{key!r}]", f"{two}[{key!r}]")
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
        if len(a) != len(b):
            yield f"{one} has {len(a)} items, {two} has {len(b)}"
        for i, (x, y) in enumerate(zip(a, b, strict=False)):
            yield from _differences(x, y, f"{one}[{i}]", f"{two}[{i}]")
    elif a != b:
        yield f"{one} is {shown(a)}, {two} is {shown(b)}"


def _run(command: Any, env: Mapping[str, str] | None, close_fds: bool) -> tuple[int, bytes]:
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=env,
        close_fds=close_fds,
        shell=isinstance(command, str),
        check=False,
    )
    return done.returncode, done.stdout


def _as_bytes(text: Any) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)
