"""Writing saved models, as ``hr.saved_model.builder``."""

from __future__ import annotations

import filecmp
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from headrace.arguments import items as _items
from headrace.documents.graft import graft
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    GraphError,
    ReservedNameError,
    SavedModelError,
    SavedModelUseError,
)
from headrace.errors import HeadraceError as _HeadraceError
from headrace.errors import shown as _shown
from headrace.graph.collections import GraphKeys
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.saveable import Saveable
from headrace.graph.scopes import control_dependencies, get_default_graph, name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.constant import placeholder
from headrace.ops.variable import Variable
from headrace.saved_model import constants
from headrace.saved_model.arrays import write_arrays
from headrace.saved_model.checks import check_no_python
from headrace.saved_model.collections import encode_collections
from headrace.saved_model.files import copy_file, write_file
from headrace.saved_model.manifest import VARIABLES_FILE, GraphRecord, Manifest, Restored
from headrace.saved_model.messages import SignatureDef, TensorInfo
from headrace.saved_model.messages import signature as as_signature

if TYPE_CHECKING:
    from headrace.session.session import Session

Saved: TypeAlias = Variable | Saveable

# Names of signatures that loaders take for something else.
_RESERVED = ("__saved_model_init_op", "__saved_model_train_op")
_log = logging.getLogger(__name__)


class SavedModelBuilder:
    """Writes graphs, their variables, signatures and assets into a folder.

    The folder holds no saved model before ``save()`` has ended: each file is written beside its
    place and renamed, and the manifest, without which nothing counts, comes last.
    """

    def __init__(self, export_dir: str | os.PathLike[str]) -> None:
        """Start a saved model.

        Args:
            export_dir: The folder, which must be empty or not be there yet; it is made.

        Raises:
            SavedModelUseError: if there is something in it.
            SavedModelError: if it cannot be made.
        """
        self._folder = Path(os.fsdecode(export_dir))
        try:
            if self._folder.exists() and any(self._folder.iterdir()):
                raise SavedModelUseError(
                    f"the folder {self._folder} is not empty; export into another one, such as "
                    "one named by a version or the time, or delete what is in it"
                )
            self._folder.mkdir(parents=True, exist_ok=True)
        except ValueError as error:
            if isinstance(error, _HeadraceError):
                raise
            # NUL, or half of a surrogate pair.
            raise SavedModelError(
                f"{_shown(str(self._folder))} names no folder: {error}"
            ) from error
        except OSError as error:
            raise SavedModelError(
                f"cannot make the folder {self._folder}: {error.strerror or error}"
            ) from error
        self._manifest = Manifest()
        self._has_variables = False
        # What became of assets: the name of each in the model, by the path of the file.
        self._assets: dict[str, Path] = {}

    def add_meta_graph_and_variables(
        self,
        sess: Session,
        tags: Iterable[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Iterable[Tensor] | None = None,
        legacy_init_op: Operation | None = None,
        clear_devices: bool = False,
        main_op: Operation | None = None,
        strip_default_attrs: bool = False,
        saver: Any = None,
    ) -> None:
        """Add the default graph, and the values that its variables have in a session.

        Call it once, for the first graph.

        Args:
            sess: A session in which the variables have values.
            tags: What the graph is for, such as ``[tag_constants.SERVING]``.
            signature_def_map: Signatures by name.
            assets_collection: Constant string tensors with paths of files that the model needs:
                the files are copied into it, and fed to ``main_op`` from there.
            legacy_init_op: The old name of ``main_op``.
            clear_devices: Whether the graph is written without the devices that it asks for.
            main_op: An operation to run after loading, such as the initializer of tables.
            strip_default_attrs: Of no effect: documents have room for new attributes.
            saver: A saver whose variables are written, under its names; if None, all global
                variables and what is in ``GraphKeys.SAVEABLE_OBJECTS``.

        Raises:
            SavedModelUseError: if variables have been added already, or a tensor of a signature
                has no name or dtype.
            ReservedNameError: if a signature has a reserved name.
            AttributeValueError: if an asset is no constant.
            FailedPreconditionError: if a variable has no value.
            SavedModelError: if something cannot be written.
        """
        if self._has_variables:
            raise SavedModelUseError(
                "the variables have been added already; add_meta_graph() adds further graphs"
            )
        signatures = _signatures(signature_def_map)
        graph = get_default_graph()
        if sess.graph is not graph:
            raise GraphError(
                "the session runs another graph than the default one, which would be saved; call "
                "this in 'with sess.graph.as_default():'"
            )
        saved = _saved(graph, saver)
        record = self._graph_record(
            graph,
            tags,
            signatures,
            assets_collection,
            main_op or legacy_init_op,
            clear_devices,
            saved,
        )
        values = sess.run({name: item.snapshot for name, item in saved.items()})
        if values:
            path = self._folder / VARIABLES_FILE

            def write(file: Any) -> None:
                self._manifest.arrays = write_arrays(file, values)

            self._manifest.files[VARIABLES_FILE] = write_file(path, write)
        self._add(record)
        self._has_variables = True

    def add_meta_graph(
        self,
        tags: Iterable[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Iterable[Tensor] | None = None,
        legacy_init_op: Operation | None = None,
        clear_devices: bool = False,
        main_op: Operation | None = None,
        strip_default_attrs: bool = False,
        saver: Any = None,
    ) -> None:
        """Add the default graph, whose variables get the values that were added before.

        Args:
            tags: What the graph is for.
            signature_def_map: Signatures by name.
            assets_collection: As for ``add_meta_graph_and_variables``.
            legacy_init_op: The old name of ``main_op``.
            clear_devices: Whether the graph is written without the devices that it asks for.
            main_op: An operation to run after loading.
            strip_default_attrs: Of no effect.
            saver: A saver whose variables are restored on loading; all if None.

        Raises:
            SavedModelUseError: if no variables have been added yet, or the graph has variables
                that were not among them.
        """
        if not self._has_variables:
            raise SavedModelUseError(
                "no variables have been added yet; call add_meta_graph_and_variables() first"
            )
        signatures = _signatures(signature_def_map)
        graph = get_default_graph()
        saved = _saved(graph, saver)
        unknown = sorted(name for name in saved if name not in self._manifest.arrays)
        if unknown:
            raise SavedModelUseError(
                f"the graph has variables whose values were not added: {', '.join(unknown[:8])}; "
                "give add_meta_graph_and_variables() the graph that has all variables, or pass a "
                "saver of those that both have"
            )
        self._add(
            self._graph_record(
                graph,
                tags,
                signatures,
                assets_collection,
                main_op or legacy_init_op,
                clear_devices,
                saved,
            )
        )

    def save(self, as_text: bool = False) -> str:
        """Write what makes the folder a saved model.

        Args:
            as_text: Of no effect: what is written is text.

        Returns:
            The path of the manifest.

        Raises:
            SavedModelUseError: if no graph has been added.
            SavedModelError: if it cannot be written.
        """
        if not self._manifest.graphs:
            raise SavedModelUseError(
                "there is no graph to save; call add_meta_graph_and_variables() first"
            )
        path = self._manifest.write(self._folder)
        _log.info("saved a model of %d graphs to %s", len(self._manifest.graphs), self._folder)
        return str(path)

    def _add(self, made: tuple[GraphRecord, str]) -> None:
        record, document = made
        content = document.encode()
        path = self._folder / record.document
        self._manifest.files[record.document] = write_file(path, lambda file: _write(file, content))
        self._manifest.graphs.append(record)

    def _graph_record(
        self,
        graph: Graph,
        tags: Iterable[str],
        signatures: dict[str, SignatureDef],
        assets_collection: Iterable[Tensor] | None,
        main_op: Any,
        clear_devices: bool,
        saved: Mapping[str, Saved],
    ) -> tuple[GraphRecord, str]:
        """Return what the manifest says of a graph, and its document."""
        labels = (tags,) if isinstance(tags, str) else tuple(_items(tags, "tags"))
        if not all(isinstance(tag, str) for tag in labels):
            raise ArgumentTypeError(f"tags must be strings, got {_shown(labels)}")
        check_no_python(graph, self._folder, exporting=True)
        for name, signature in signatures.items():
            _check_tensors(graph, name, signature)
        _add_main_op(graph, main_op)
        assets = self._copy_assets(assets_collection)
        restored = tuple(_restored(graph, name, item) for name, item in saved.items())
        written = graph
        if clear_devices:
            written = Graph()
            written.seed = graph.seed
            graft(graph, written, clear_devices=True)
        return (
            GraphRecord(
                labels,
                f"graphs/{len(self._manifest.graphs)}.json",
                signatures,
                encode_collections(graph),
                restored,
                assets,
            ),
            written.to_document(),
        )

    def _copy_assets(self, tensors: Iterable[Tensor] | None) -> dict[str, str]:
        """Copy the files that constants name into the model; files by names of tensors."""
        found = {}
        for tensor in _items(tensors or (), "assets_collection"):
            source = _path_of(tensor)
            name = self._asset_name(source)
            if name not in self._assets:
                file = f"{constants.ASSETS_DIRECTORY}/{name}"
                self._manifest.files[file] = copy_file(source, self._folder / file)
                self._assets[name] = source
            found[tensor.name] = name
        return found

    def _asset_name(self, source: Path) -> str:
        """Return the name of a file in the model: its own, with a number where that is taken."""
        number, name = 0, source.name
        while name in self._assets:
            other = self._assets[name]
            if other == source or _same(other, source):
                return name
            number += 1
            name = f"{source.name}_{number}"
        return name


def _signatures(given: Mapping[str, Any] | None) -> dict[str, SignatureDef]:
    """Return signatures as records, each tensor of which has a name and a dtype."""
    found = {}
    for name, value in (given or {}).items():
        made = found[name] = as_signature(value)
        for key, info in (*made.inputs.items(), *made.outputs.items()):
            if not info.names or not info.dtype:
                raise SavedModelUseError(
                    f"the tensor {key!r} of the signature {name!r} has no name or no dtype; make "
                    "it with hr.saved_model.build_tensor_info(tensor)"
                )
        if name in _RESERVED:
            raise ReservedNameError(f"the name {name!r} of a signature is reserved")
    return found


def _check_tensors(graph: Graph, name: str, signature: SignatureDef) -> None:
    infos: list[tuple[str, TensorInfo]] = [*signature.inputs.items(), *signature.outputs.items()]
    for key, info in infos:
        for tensor in info.names:
            try:
                graph.get_tensor_by_name(tensor)
            except GraphError as error:
                raise GraphError(f"{key!r} of the signature {name!r}: {error}") from None


def _add_main_op(graph: Graph, main_op: Any) -> None:
    if main_op is None:
        return
    if not isinstance(main_op, Operation):
        raise ArgumentTypeError(f"main_op must be an operation, got {_shown(main_op)}")
    for key in (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY):
        if graph.get_collection(key):
            raise AttributeValueError(
                "the graph has an operation to run after loading already, in its collection "
                f"{key!r}"
            )
    graph.add_to_collection(constants.MAIN_OP_KEY, main_op)


def _saved(graph: Graph, saver: Any) -> dict[str, Saved]:
    """Return what is saved, by name."""
    if saver is not None:
        by_name: Mapping[str, Saved] = saver.saved
        return dict(by_name)
    items = [
        *graph.get_collection(GraphKeys.GLOBAL_VARIABLES),
        *graph.get_collection(GraphKeys.SAVEABLE_OBJECTS),
    ]
    return {item.op_name: item for item in items}


def _restored(graph: Graph, name: str, item: Saved) -> Restored:
    """Return how a variable, or other state, is restored."""
    if isinstance(item, Variable):
        return Restored(name, item.initializer.inputs[1].name, item.initializer.name)
    with graph.as_default(), control_dependencies(None), name_scope(None, "save"):
        feed = placeholder(item.dtype, item.shape, name="value")
        return Restored(name, feed.name, item.restore(feed).name)


def _path_of(tensor: Any) -> Path:
    """Return the path that a constant holds."""
    if not isinstance(tensor, Tensor):
        raise AttributeValueError(
            f"an asset is a tensor with the path of a file, got {_shown(tensor)}"
        )
    value = tensor.spec.value if tensor.op.type == "Const" else None
    item = None if value is None or value.size != 1 else value.ravel()[0]
    if not isinstance(item, bytes) or not item:
        raise AttributeValueError(
            f"{_shown(tensor)} is no asset: expected a constant string, the path of a file"
        )
    return Path(os.fsdecode(item))


def _same(first: Path, second: Path) -> bool:
    try:
        return filecmp.cmp(first, second, shallow=False)
    except OSError:
        return False


def _write(file: Any, content: bytes) -> None:
    file.write(content)
