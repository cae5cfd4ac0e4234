"""Where models come from: folders with versions, which may change, and what programs made."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import headrace as hr
from headrace.errors import (
    ConfigError,
    HeadraceError,
    InvalidArgumentError,
    NotFoundError,
    shown,
)
from headrace.extend.arguments import mapping, real
from headrace_io.streams import file_name
from headrace_serve.counters import Counters
from headrace_serve.limits import Batching
from headrace_serve.models.loading import is_saved_model, load, loaded
from headrace_serve.models.model import LoadedModel, Model, Version
from headrace_serve.models.signature import DEFAULT_SIGNATURE, Signature

_LOG = logging.getLogger("headrace.serve")

ModelSource: TypeAlias = "str | Path | hr.saved_model.Model | LoadedModel | Signature"
Models: TypeAlias = "ModelSource | Mapping[str, ModelSource]"

# Seconds that the end waits for steps whose answers nobody waits for.
_PATIENCE = 1.0
# What stands between the slashes of addresses.
_NOT_IN_NAMES = set("/:?#%")


class Sources:
    """The models of a server, kept up to date with the folders that they come from.

    Attributes:
        models: The models, by name.
    """

    def __init__(
        self, models: Models, *, name: str, batching: Batching, counters: Counters, poll: float
    ) -> None:
        """Load all models.

        Raises:
            HeadraceError: if one cannot be loaded, or has no name.
        """
        if not real(poll, "poll") >= 0:
            raise ConfigError(f"poll: expected a number of seconds >= 0, got {shown(poll)}")
        self.models: dict[str, Model] = {}
        self._batching = batching
        self._counters = counters
        self._poll = poll
        self._folders: dict[str, Path] = {}
        self._closing: set[asyncio.Task[None]] = set()
        by_name = mapping(models, "models") if isinstance(models, Mapping) else {name: models}
        if not by_name:
            raise ConfigError("there is no model to serve: expected at least one")
        for given, source in by_name.items():
            self._add(given, source)

    def _add(self, name: str, source: ModelSource) -> None:
        if isinstance(source, Signature):
            source = LoadedModel({DEFAULT_SIGNATURE: source})
        elif not isinstance(source, str | Path | LoadedModel):
            source = loaded(source)
        folder = None if isinstance(source, LoadedModel) else Path(file_name(source)).resolve()
        name = name or (_name_of(folder) if folder is not None else "model")
        if not name or set(name) & _NOT_IN_NAMES:
            raise ConfigError(
                f"{name!r} is no name of a model: expected one without / : ? # %, as it is part "
                "of addresses"
            )
        if name in self.models:
            raise ConfigError(f"two models are called {name!r}; name them: NAME=FOLDER")
        model = self.models[name] = Model(name)
        if isinstance(source, LoadedModel):
            model.add(self._version(model, 1, source))
            return
        assert folder is not None
        found = versions_in(folder)
        if not found:
            raise NotFoundError(
                f"{folder} holds no saved model: expected one, or folders with saved models that "
                "are called by the numbers of versions, as in 1"
            )
        for number, path in found.items():
            self._load(model, number, path)
        if not model.versions:
            listed = "; ".join(f"{number}: {why}" for number, why in model.failures.items())
            raise InvalidArgumentError(f"no version of the model {name!r} can be loaded: {listed}")
        if not is_saved_model(folder):
            self._folders[name] = folder

    def _version(self, model: Model, number: int, loaded: LoadedModel) -> Version:
        return Version(number, loaded, self._batching, model=model.name, counters=self._counters)

    def _load(self, model: Model, number: int, path: Path) -> None:
        try:
            found = load(path)
        except HeadraceError as error:
            if model.failures.get(number) != str(error):
                _LOG.warning("version %d of the model %r: %s", number, model.name, error)
            model.failures[number] = str(error)
        else:
            model.add(self._version(model, number, found))

    # -- versions that come and go

    def watch(self) -> asyncio.Task[None] | None:
        """Start to look for versions that come and go, if that is asked for."""
        if not self._poll or not self._folders:
            return None
        return asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._poll)
            for name, folder in self._folders.items():
                try:
                    await self._update(self.models[name], folder)
                except Exception:
                    _LOG.exception("looking for versions of the model %r failed", name)

    async def _update(self, model: Model, folder: Path) -> None:
        found = versions_in(folder)
        for number, path in found.items():
            if number not in model.versions:
                await asyncio.to_thread(self._load, model, number, path)
                if number in model.versions:
                    _LOG.info("version %d of the model %r answers", number, model.name)
        if not found:
            # Whatever became of the folder, what answers goes on.
            return
        for number in [n for n in {*model.versions, *model.failures} if n not in found]:
            model.failures.pop(number, None)
            gone = model.versions.pop(number, None)
            if gone is not None:
                _LOG.info("version %d of the model %r answers no more", number, model.name)
                closing = asyncio.create_task(gone.close())
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Let go of all models; steps that run are those of requests that were given up."""
        versions = [
            version for model in self.models.values() for version in model.versions.values()
        ]
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(
                *self._closing, *(version.close(_PATIENCE) for version in versions)
            )


def versions_in(folder: Path) -> dict[int, Path]:
    """Return the saved models of a folder by the numbers of their versions.

    A folder that is a saved model itself is a version: of the number that is its name, else 1.
    """
    if is_saved_model(folder):
        return {int(folder.name) if folder.name.isdecimal() else 1: folder}
    try:
        if not folder.is_dir():
            return {}
    except OSError:
        # A name that is too long.
        return {}
    found = {int(p.name): p for p in folder.iterdir() if p.name.isdecimal() and is_saved_model(p)}
    return dict(sorted(found.items()))


def _name_of(folder: Path) -> str:
    return folder.parent.name if folder.name.isdecimal() else folder.name
