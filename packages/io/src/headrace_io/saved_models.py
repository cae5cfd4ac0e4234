"""Saved models that TensorFlow wrote (``saved_model.pb``), read without it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import headrace as hr
from headrace import Graph
from headrace.errors import DataLossError, SavedModelDamagedError
from headrace.extend.files import open_regular
from headrace_io.meta_graph import import_meta_graph_def
from headrace_io.protos.pool import message_class, parsed

_INIT = "__saved_model_init_op"
_RESERVED = (_INIT, "__saved_model_train_op")
# What TensorFlow keeps there of itself, and what is read apart.
_ASSETS = "saved_model_assets"
_LEFT_OUT = (_ASSETS, "cond_context", "while_context")
_VERSION = 1


@final
@dataclass(frozen=True, slots=True)
class ForeignGraph:
    """A graph of a saved model.

    Attributes:
        message: The ``MetaGraphDef``.
    """

    message: Any

    @property
    def tags(self) -> tuple[str, ...]:
        """What it is for."""
        return tuple(self.message.meta_info_def.tags)

    @property
    def signatures(self) -> dict[str, Any]:
        """Its signatures by name, as messages."""
        found = self.message.signature_def
        return {name: found[name] for name in sorted(found) if name not in _RESERVED}

    @property
    def assets(self) -> dict[str, str]:
        """Files by the names of the tensors that hold their paths."""
        items = list(self.message.asset_file_def)
        if _ASSETS in self.message.collection_def:
            # Where builders of TensorFlow 1 write them.
            stored = self.message.collection_def[_ASSETS].any_list.value
            items += [parsed("AssetFileDef", item.value, "an asset") for item in stored]
        return {item.tensor_info.name: item.filename for item in items}

    @property
    def restore(self) -> tuple[str, str] | None:
        """The tensor that takes the prefix of the checkpoint, and the operation that restores."""
        saver = self.message.saver_def
        if not saver.restore_op_name:
            return None
        return saver.filename_tensor_name, saver.restore_op_name

    @property
    def initializers(self) -> list[str]:
        """The operations to run after loading; there may be one."""
        signatures, collections = self.message.signature_def, self.message.collection_def
        if _INIT in signatures:
            return [info.name for info in signatures[_INIT].outputs.values()]
        for key in ("saved_model_main_op", "legacy_init_op"):
            if key in collections and collections[key].node_list.value:
                return list(collections[key].node_list.value)
        return []

    def read(self) -> Graph:
        """Return the graph, with its collections.

        Raises:
            HeadraceError: as ``import_graph_def`` does.
        """
        message = message_class("MetaGraphDef")()
        message.CopyFrom(self.message)
        for key in _LEFT_OUT:
            message.collection_def.pop(key, None)
        graph = Graph()
        with graph.as_default():
            import_meta_graph_def(message)
        return graph


def read_saved_model(export_dir: str | os.PathLike[str]) -> list[ForeignGraph]:
    """Return the graphs of a saved model that TensorFlow wrote.

    Args:
        export_dir: The folder, which holds ``saved_model.pb``, or ``saved_model.pbtxt``.

    Raises:
        SavedModelDamagedError: if the file is damaged, or of another version.
    """
    folder = Path(os.fsdecode(export_dir))
    binary = folder / hr.saved_model.SAVED_MODEL_FILENAME_PB
    path = folder / hr.saved_model.SAVED_MODEL_FILENAME_PBTXT
    try:
        path = binary if binary.is_file() else path
        with open_regular(path) as file:
            content = file.read()
        model = parsed("SavedModel", content, str(path)) if path is binary else _from_text(content)
    except (OSError, ValueError, DataLossError) as error:
        raise SavedModelDamagedError(f"{path} cannot be read: {error}") from error
    if model.saved_model_schema_version != _VERSION or not model.meta_graphs:
        raise SavedModelDamagedError(
            f"{path} is of version {model.saved_model_schema_version} with "
            f"{len(model.meta_graphs)} graphs, expected version {_VERSION} and one graph or more"
        )
    return [ForeignGraph(message) for message in model.meta_graphs]


def _from_text(content: bytes) -> Any:
    # lazy: few saved models are text
    from google.protobuf import text_format

    try:
        return text_format.Parse(content.decode("utf-8"), message_class("SavedModel")())
    except text_format.ParseError as error:
        raise ValueError(str(error)[:200]) from error
