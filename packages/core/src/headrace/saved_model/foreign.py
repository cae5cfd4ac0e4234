"""Saved models of TensorFlow, through the package that has its messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace.errors import GraphError, HeadraceError, PluginError, SavedModelDamagedError, shown
from headrace.graph.graph import Graph
from headrace.plugins.host import host
from headrace.saved_model import constants
from headrace.saved_model.manifest import GraphRecord, Manifest
from headrace.saved_model.messages import signature

_PB, _PBTXT = constants.SAVED_MODEL_FILENAME_PB, constants.SAVED_MODEL_FILENAME_PBTXT


class ForeignModel:
    """A saved model that TensorFlow wrote.

    Attributes:
        folder: Where it is.
        manifest: What is known of its graphs.
    """

    def __init__(self, folder: Path) -> None:
        """Read what there is to know of its graphs.

        Raises:
            PluginError: if the package that reads messages is not installed.
            SavedModelDamagedError: if the file is damaged.
        """
        self.folder = folder
        found = _reader()(folder)
        self.manifest = Manifest()
        self._graphs: dict[str, Any] = {}
        for i, graph in enumerate(found):
            try:
                signatures = {key: signature(item) for key, item in graph.signatures.items()}
            except GraphError as error:
                raise SavedModelDamagedError(f"{folder}: {error}") from error
            started = [{"operation": name} for name in graph.initializers]
            collections = {constants.MAIN_OP_KEY: started} if started else {}
            document = f"{_PB} ({i})"
            self._graphs[document] = graph
            self.manifest.graphs.append(
                GraphRecord(graph.tags, document, signatures, collections, (), graph.assets)
            )

    def read_graph(self, record: GraphRecord) -> Graph:
        """Read a graph, with its collections.

        Raises:
            SavedModelDamagedError: if it is damaged, or has ops that nobody translates.
        """
        try:
            graph: Graph = self._graphs[record.document].read()
        except HeadraceError as error:
            raise SavedModelDamagedError(f"{self.folder / _PB} cannot be read: {error}") from error
        return graph

    def restoring(self, record: GraphRecord) -> tuple[str, str, Path] | None:
        """Return the tensor that takes a prefix, the operation that restores, and the prefix."""
        found = self._graphs[record.document].restore
        prefix = self.folder / constants.VARIABLES_DIRECTORY / constants.VARIABLES_FILENAME
        # A model without variables may have a saver, and has no files then.
        if found is None or not prefix.with_name(f"{prefix.name}.index").is_file():
            return None
        return found[0], found[1], prefix

    def asset(self, name: str) -> Path:
        """Return the path of a file of the model.

        Raises:
            SavedModelDamagedError: if it is missing, or lies elsewhere.
        """
        path = self.folder / constants.ASSETS_DIRECTORY / name
        if "/" in name or "\\" in name or name in ("", ".", "..") or not path.is_file():
            raise SavedModelDamagedError(
                f"the saved model in {self.folder} has no asset {shown(name)}"
            )
        return path


def foreign_model(folder: Path) -> ForeignModel | None:
    """Return the model in a folder where TensorFlow wrote it, else None."""
    try:
        ours = (folder / constants.SAVED_MODEL_FILENAME_JSON).is_file()
        theirs = any((folder / name).is_file() for name in (_PB, _PBTXT))
    except (OSError, ValueError):
        # A path that no file can have; whoever reads it says so.
        return None
    if ours or not theirs:
        return None
    return ForeignModel(folder)


def _reader() -> Any:
    try:
        return host().resolve_name("io").read_saved_model
    except AttributeError as error:
        raise PluginError(
            "saved models of TensorFlow are messages of Protocol Buffers: reading them needs the "
            "packages headrace-io and headrace-train: pip install headrace-io headrace-train"
        ) from error
