"""What a saved model says of a graph, with the fields of TensorFlow's ``MetaGraphDef``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, final

from headrace.graph.graph import Graph
from headrace.saved_model.constants import ASSETS_KEY
from headrace.saved_model.manifest import GraphRecord
from headrace.saved_model.messages import AssetFileDef, SignatureDef, TensorInfo


@final
class MetaGraph:
    """A graph of a saved model, and what is said of it.

    Attributes:
        tags: What it is for.
        signature_def: Its signatures by name.
        assets: Names of files in the model by the names of the tensors that hold their paths.
        graph: The graph as the model has it.
    """

    def __init__(self, record: GraphRecord, graph: Graph) -> None:
        self.tags: tuple[str, ...] = record.tags
        self.signature_def: dict[str, SignatureDef] = dict(record.signatures)
        self.assets: dict[str, str] = dict(record.assets)
        self.graph = graph

    @property
    def meta_info_def(self) -> Any:
        """What has the ``tags`` as a list."""
        return SimpleNamespace(tags=list(self.tags))

    @property
    def graph_def(self) -> Any:
        """The graph as a ``GraphDef``; needs the package headrace-io."""
        return self.graph.as_graph_def()

    @property
    def asset_file_def(self) -> list[AssetFileDef]:
        """The files that the model needs, each with the tensor that holds its path."""
        return [AssetFileDef(TensorInfo(name), file) for name, file in self.assets.items()]

    @property
    def collection_def(self) -> dict[str, list[Any]]:
        """What is in the graph's collections, by their names, and the files it needs."""
        keys = self.graph.get_all_collection_keys()
        found = {key: self.graph.get_collection(key) for key in keys}
        return {**found, ASSETS_KEY: list(self.asset_file_def)} if self.assets else found

    def __repr__(self) -> str:
        return f"<MetaGraph of tags {list(self.tags)}, signatures {sorted(self.signature_def)}>"
