"""The folder of a saved model as those read it who trust nothing in it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from headrace.documents.document import load as load_document
from headrace.errors import (
    DocumentError,
    GraphError,
    HeadraceError,
    SavedModelDamagedError,
    SavedModelTagsError,
)
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.saved_model import constants
from headrace.saved_model.arrays import ArrayReader
from headrace.saved_model.checks import check_harmless, check_no_python
from headrace.saved_model.collections import add_collections
from headrace.saved_model.files import check_file
from headrace.saved_model.foreign import ForeignModel, foreign_model
from headrace.saved_model.manifest import VARIABLES_FILE, GraphRecord, Manifest

if TYPE_CHECKING:
    from headrace.session.session import Session


@final
class SavedModelDirectory:
    """A saved model on the disk.

    Attributes:
        folder: Where it is.
        manifest: What it holds.
    """

    def __init__(self, export_dir: str | os.PathLike[str]) -> None:
        """Read the manifest.

        Raises:
            SavedModelNotFoundError: if there is no saved model.
            SavedModelDamagedError: if the manifest is damaged.
        """
        self.folder = Path(os.fsdecode(export_dir))
        self._foreign = foreign_model(self.folder)
        if self._foreign is not None:
            self.manifest = self._foreign.manifest
        else:
            self.manifest = Manifest.read(self.folder)

    def record(self, tags: Iterable[str]) -> GraphRecord:
        """Return the record of the graph that has exactly the tags.

        Raises:
            SavedModelTagsError: if there is none.
        """
        wanted = {tags} if isinstance(tags, str) else set(tags)
        for graph in self.manifest.graphs:
            if set(graph.tags) == wanted:
                return graph
        there = ", ".join(str(sorted(graph.tags)) for graph in self.manifest.graphs[:8])
        raise SavedModelTagsError(
            f"the saved model in {self.folder} has no graph with the tags {sorted(wanted)}; its "
            f"graphs have the tags {there}"
        )

    def only_record(self) -> GraphRecord:
        """Return the record of the graph for serving, or of the only one.

        Raises:
            SavedModelTagsError: if there are several, and none has the tag ``serve`` alone.
        """
        graphs = self.manifest.graphs
        return graphs[0] if len(graphs) == 1 else self.record(["serve"])

    def read_graph(self, record: GraphRecord) -> Graph:
        """Read a graph, with its collections.

        Raises:
            SavedModelDamagedError: if it is damaged, or holds what a saved model must not hold.
        """
        if self._foreign is not None:
            graph = self._foreign.read_graph(record)
            check_no_python(graph, self.folder, exporting=False)
            return graph
        path = check_file(self.folder, record.document, self.manifest.files[record.document])
        try:
            graph = load_document(path.read_bytes())
            add_collections(graph, record.collections)
        except (DocumentError, GraphError, ValueError) as error:
            if isinstance(error, SavedModelDamagedError):
                raise
            raise SavedModelDamagedError(f"{path} cannot be read: {error}") from error
        check_no_python(graph, self.folder, exporting=False)
        return graph

    def restore(self, session: Session, record: GraphRecord, prefix: str = "") -> None:
        """Give the variables of a graph the values that they were saved with.

        Args:
            session: A session of a graph that holds the model's.
            record: What is said of the graph.
            prefix: What precedes its names there, with a slash at the end.
        """
        if self._foreign is not None:
            self._restore_checkpoint(self._foreign, session, record, prefix)
        if not record.variables:
            return
        arrays = self.manifest.arrays
        check = self.manifest.files[VARIABLES_FILE]
        path = check_file(self.folder, VARIABLES_FILE, check, content=False)
        values = ArrayReader(path, arrays).read([v.name for v in record.variables])
        # Variables made from one tensor take their values through it, one after the other.
        rounds: list[dict[Tensor, Any]] = []
        targets: list[list[Operation]] = []
        for variable in record.variables:
            feed = self._element(session.graph, prefix + variable.feed, Tensor)
            target = self._element(session.graph, prefix + variable.operation, Operation)
            value = values[variable.name]
            if feed.dtype.numpy != value.dtype or not feed.shape.is_compatible_with(value.shape):
                raise SavedModelDamagedError(
                    f"{path}: {variable.name!r} is {value.dtype}{list(value.shape)}, in the graph "
                    f"it is {feed.dtype}{feed.shape}"
                )
            number = next((i for i, fed in enumerate(rounds) if feed not in fed), len(rounds))
            if number == len(rounds):
                rounds.append({})
                targets.append([])
            rounds[number][feed] = value
            targets[number].append(target)
        check_harmless([op for some in targets for op in some], f"loading {self.folder}")
        for fed, some in zip(rounds, targets, strict=True):
            session.run(some, fed)

    def _restore_checkpoint(
        self, model: ForeignModel, session: Session, record: GraphRecord, prefix: str
    ) -> None:
        """Run the operation that restores the variables of a model of TensorFlow."""
        found = model.restoring(record)
        if found is None:
            return
        feed = self._element(session.graph, prefix + found[0], Tensor)
        target = self._element(session.graph, prefix + found[1], Operation)
        check_harmless([target], f"loading {self.folder}")
        session.run(target, {feed: os.fsencode(found[2].absolute())})

    def initialize(self, session: Session, record: GraphRecord, prefix: str = "") -> None:
        """Run the operation that the model asks for after loading, with the paths of its assets.

        Raises:
            SavedModelDamagedError: if an asset is missing or damaged, or there are several such
                operations.
        """
        feeds = {}
        for name, file in record.assets.items():
            if self._foreign is not None:
                path = self._foreign.asset(file)
            else:
                inside = f"{constants.ASSETS_DIRECTORY}/{file}"
                path = check_file(self.folder, inside, self.manifest.files[inside])
            feed = self._element(session.graph, prefix + name, Tensor)
            feeds[feed] = os.fsencode(path.absolute())
        for key in (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY):
            items = record.collections.get(key, [])
            if not items:
                continue
            if len(items) != 1 or "operation" not in items[0]:
                raise SavedModelDamagedError(
                    f"the saved model in {self.folder} must have one operation to run after "
                    f"loading in the collection {key!r}, it has {len(items)} entries"
                )
            target = self._element(session.graph, prefix + items[0]["operation"], Operation)
            check_harmless([target], f"loading {self.folder}")
            session.run(target, feeds)
            return

    def _element(self, graph: Graph, name: str, kind: Any) -> Any:
        try:
            found = graph.as_graph_element(name)
        except HeadraceError as error:
            raise SavedModelDamagedError(f"the saved model in {self.folder}: {error}") from error
        if not isinstance(found, kind):
            raise SavedModelDamagedError(
                f"the saved model in {self.folder} names {name!r} where a {kind.__name__} is meant"
            )
        return found
