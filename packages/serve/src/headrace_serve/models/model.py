"""Models: numbered versions, each with its signatures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from headrace_serve.batching.batcher import Batcher
from headrace_serve.counters import Counters
from headrace_serve.errors import BAD_REQUEST, NOT_FOUND, RequestError
from headrace_serve.limits import Batching
from headrace_serve.models.signature import Signature

# TensorFlow Serving's names of what versions are in.
AVAILABLE = "AVAILABLE"
UNLOADING = "UNLOADING"
END = "END"


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """The signatures of a saved model, and what lets go of what they use.

    Attributes:
        signatures: The signatures, by name.
        close: Called once, when nothing runs any more; None if there is nothing to let go of.
    """

    signatures: Mapping[str, Signature]
    close: Callable[[], None] | None = field(default=None, repr=False)


class Version:
    """One version of a model, which answers requests.

    Attributes:
        number: Its number.
        state: What it is in, as TensorFlow Serving calls it.
        signatures: Its signatures, by name.
    """

    def __init__(
        self,
        number: int,
        loaded: LoadedModel,
        settings: Batching,
        *,
        model: str,
        counters: Counters,
    ) -> None:
        """Make a version of what was loaded."""
        self.number = number
        self.state = AVAILABLE
        self.signatures = dict(loaded.signatures)
        self._close = loaded.close
        self._model = model
        self._settings = settings
        self._counters = counters
        self._batchers: dict[str, Batcher] = {}
        self._users = 0
        self._unused = asyncio.Event()
        self._unused.set()

    def signature(self, name: str) -> Signature:
        """Return a signature.

        Raises:
            RequestError: if there is none of that name; names those that there are.
        """
        found = self.signatures.get(name)
        if found is None:
            known = ", ".join(map(repr, sorted(self.signatures))) or "none"
            raise RequestError(
                BAD_REQUEST,
                f"version {self.number} of the model {self._model!r} has no signature {name!r}; "
                f"its signatures: {known}",
            )
        return found

    def batcher(self, name: str) -> Batcher:
        """Return the queue of requests for a signature."""
        if name not in self._batchers:
            labels = {"model": self._model, "version": str(self.number), "signature": name}

            def on_step(requests: int, rows: int) -> None:
                self._counters.add("steps", labels)
                self._counters.add("step_requests", labels, requests)
                self._counters.add("step_rows", labels, rows)

            self._batchers[name] = Batcher(
                self.signature(name),
                self._settings,
                name=f"{self._model}/{self.number}/{name}",
                on_step=on_step,
            )
        return self._batchers[name]

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the version from being let go of, from when it is chosen until it has answered."""
        self._users += 1
        self._unused.clear()
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                self._unused.set()

    @property
    def waiting(self) -> int:
        """How many requests wait for a step."""
        return sum(batcher.waiting for batcher in self._batchers.values())

    async def close(self, timeout: float | None = None) -> None:
        """Wait for the requests that it answers and the steps that run; let go of the model.

        Args:
            timeout: The most seconds to wait for either, None for any number. A model whose steps
                still run then is left as it is.
        """
        self.state = UNLOADING
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._unused.wait()
        batchers = self._batchers.values()
        if all(await asyncio.gather(*(batcher.close(timeout) for batcher in batchers))):
            self.state = END
            if self._close is not None:
                self._close()


class Model:
    """A model under its name: the versions that answer.

    Attributes:
        name: Its name in addresses.
        versions: Its versions by number.
        failures: Why versions do not answer that were found, by number.
    """

    def __init__(self, name: str) -> None:
        """Make a model without versions."""
        self.name = name
        self.versions: dict[int, Version] = {}
        self.failures: dict[int, str] = {}

    def add(self, version: Version) -> None:
        """Let a version answer."""
        self.failures.pop(version.number, None)
        self.versions[version.number] = version

    def version(self, number: int | None) -> Version:
        """Return a version; the highest where none is named.

        Raises:
            RequestError: if there is none of that number.
        """
        if number is None and self.versions:
            return self.versions[max(self.versions)]
        found = None if number is None else self.versions.get(number)
        if found is None:
            asked = "version" if number is None else f"version {number}"
            known = ", ".join(map(str, sorted(self.versions))) or "none"
            why = self.failures.get(number) if number is not None else None
            reason = f" ({why})" if why else ""
            raise RequestError(
                NOT_FOUND,
                f"the model {self.name!r} has no {asked} that answers{reason}; its versions: "
                f"{known}",
            )
        return found
