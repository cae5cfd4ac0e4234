"""Loading saved models into sessions, as ``hr.saved_model.loader``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.documents.graft import graft
from headrace.errors import ArgumentTypeError
from headrace.errors import shown as _shown
from headrace.saved_model import constants
from headrace.saved_model.directory import SavedModelDirectory
from headrace.saved_model.meta_graph import MetaGraph

if TYPE_CHECKING:
    from headrace.session.session import Session


def load(
    sess: Session,
    tags: Iterable[str],
    export_dir: str | os.PathLike[str],
    import_scope: str | None = None,
    **saver_kwargs: Any,
) -> MetaGraph:
    """Add a graph of a saved model to that of a session, and set its variables.

    Nothing is added to the graph where the model is damaged. What a stranger's model holds is data
    and declared ops: nothing of it runs but what sets the variables, and the operation that it
    names to be run after loading, which may not write files.

    Args:
        sess: The session.
        tags: The tags of the graph, all of them.
        export_dir: The folder of the model.
        import_scope: The scope under which the operations stand; their own names if None.
        saver_kwargs: ``clear_devices=True`` drops the devices that operations ask for; further
            arguments of TensorFlow's savers have no effect.

    Returns:
        What the model says of the graph, such as its signatures. The names in there are those
        without the scope.

    Raises:
        SavedModelNotFoundError: if there is no saved model.
        SavedModelTagsError: if it has no graph with these tags.
        SavedModelDamagedError: if it is damaged.
        GraphError: if the session's graph has operations of these names.
    """
    if import_scope is not None and not isinstance(import_scope, str):
        raise ArgumentTypeError(f"import_scope must be a name, got {_shown(import_scope)}")
    model = SavedModelDirectory(export_dir)
    record = model.record(tags)
    source = model.read_graph(record)
    prefix = sess.graph.unique_full_name(import_scope) if import_scope else ""
    graft(source, sess.graph, prefix=prefix, clear_devices=bool(saver_kwargs.get("clear_devices")))
    before = f"{prefix}/" if prefix else ""
    model.restore(sess, record, before)
    model.initialize(sess, record, before)
    return MetaGraph(record, source)


def contains_saved_model(export_dir: str | os.PathLike[str]) -> bool:
    """Whether a folder looks like a saved model, of Headrace or of TensorFlow.

    Args:
        export_dir: The folder. Nothing in it is read.
    """
    folder = Path(os.fsdecode(export_dir))
    names = (
        constants.SAVED_MODEL_FILENAME_JSON,
        constants.SAVED_MODEL_FILENAME_PB,
        constants.SAVED_MODEL_FILENAME_PBTXT,
    )
    try:
        return any((folder / name).is_file() for name in names)
    except OSError:
        # A name that is too long.
        return False


maybe_saved_model_directory = contains_saved_model
