"""Saving the variables of a session to a checkpoint, and restoring them."""

from __future__ import annotations

import logging
import operator
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import headrace as hr
from headrace import Operation, Tensor, Variable
from headrace.errors import CheckpointError, GraphError, UninitializedError, listing, shorten
from headrace_train.checkpoint import CheckpointDirectory, CheckpointReader

if TYPE_CHECKING:
    from headrace import Session

_SUFFIX = ".h5"
_log = logging.getLogger(__name__)


@final
class Saver:
    """Saves variables to HDF5 files and restores them, whatever the session runs on.

    A checkpoint is written beside its name, read back, compared, and only then takes the name, so
    that a crash at any moment leaves either the old file or the new one. It can be read with plain
    h5py; each variable is a data set under its name.

    All operations that it needs are added when it is made; ``save`` and ``restore`` add none.

    Attributes:
        max_to_keep: How many checkpoints of a series stay; None for all.
    """

    def __init__(
        self,
        var_list: Sequence[Variable] | Mapping[str, Variable] | None = None,
        max_to_keep: int | None = 5,
        name: str | None = None,
    ) -> None:
        """Choose what to save.

        Args:
            var_list: The variables, or a dict that gives each the name under which it is saved;
                all variables that the default graph has now if None.
            max_to_keep: How many checkpoints stay of those whose paths differ only in their step;
                older ones are deleted. None or 0 for all.
            name: Prefix of the operations.

        Raises:
            CheckpointError: if there are no variables, two have one name, or ``max_to_keep`` is
                negative.
            GraphError: if they are no variables of one graph.
        """
        self._variables = _by_name(var_list)
        self._graph = next(iter(self._variables.values())).graph
        self.max_to_keep = max_to_keep or None
        # Fails here rather than after hours, when it is first used.
        CheckpointDirectory(".", max_to_keep=self.max_to_keep)
        self._directories: dict[Path, CheckpointDirectory] = {}
        self._written: list[Path] = []
        self._values: dict[str, Tensor] = {}
        self._feeds: dict[str, Tensor] = {}
        self._has_value: dict[str, Tensor] = {}
        writes: list[Operation] = []
        with self._graph.as_default(), hr.control_dependencies(None), hr.name_scope(name, "save"):
            for label, variable in self._variables.items():
                self._values[label] = variable.snapshot
                self._has_value[label] = variable.is_initialized()
                value = hr.placeholder(variable.dtype, variable.shape, name="value")
                self._feeds[label] = value
                writes.append(variable.assign(value, name="restore").op)
            self._restore = hr.group(*writes, name="restore_all")

    @property
    def last_checkpoints(self) -> list[str]:
        """Paths of the checkpoints that this saver wrote and that are still there, latest last."""
        self._written = [file for file in self._written if file.is_file()]
        return [str(file) for file in self._written]

    def save(
        self,
        sess: Session,
        save_path: str | Path,
        global_step: int | Variable | Tensor | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
    ) -> str:
        """Write a checkpoint.

        Args:
            sess: A session of the saver's graph in which all its variables have values.
            save_path: The file. The step, if given, and ``.h5`` follow: ``model`` becomes
                ``model.h5`` or ``model-100.h5``. Folders are made where they are missing.
            global_step: The step: a number, or a variable or tensor to fetch it from.
            metadata: Anything else worth keeping, a JSON object, such as the state of a data set.

        Returns:
            The path of the file.

        Raises:
            UninitializedError: if variables have no value; all are named.
            CheckpointError: if the file cannot be written; nothing has been deleted then.
        """
        self._check(sess)
        folder, base = _split(save_path)
        fetches: list[Any] = [self._values]
        if isinstance(global_step, Variable | Tensor):
            fetches.append(global_step)
        try:
            tensors, *rest = sess.run(fetches)
        except UninitializedError as error:
            raise UninitializedError(self._without_value(sess)) from error
        step = _whole(rest[0] if rest else global_step)
        name = base if step is None else f"{base}-{step}"
        file = self._directory(folder).write(name + _SUFFIX, tensors, step=step, metadata=metadata)
        self._written = [other for other in self._written if other != file] + [file]
        _log.info("saved %d variables to %s", len(tensors), file)
        return str(file)

    def restore(self, sess: Session, save_path: str | Path) -> None:
        """Give the variables the values that they had when a checkpoint was written.

        They need no initialization before. Either all of them are assigned, or none is.

        Args:
            sess: A session of the saver's graph.
            save_path: What ``save`` returned or was given.

        Raises:
            CheckpointError: if the file is missing, foreign, truncated or damaged, or if variables
                are not in it or differ in dtype or shape; all are named.
        """
        self._check(sess)
        with CheckpointReader(_existing(save_path)) as reader:
            faults = [
                f"  {fault}"
                for label, variable in self._variables.items()
                if (fault := _fault(label, variable, reader))
            ]
            if faults:
                count = f"{len(faults)} of {len(self._variables)} variables"
                first = f"{count} cannot be restored from {reader.path}; nothing was changed:"
                raise CheckpointError(shorten([first, *faults]))
            arrays = reader.read(self._variables)
        sess.run(self._restore, {self._feeds[label]: array for label, array in arrays.items()})
        _log.info("restored %d variables from %s", len(arrays), reader.path)

    def _check(self, sess: Session) -> None:
        if sess.graph is not self._graph:
            raise GraphError(
                "the session runs another graph than that of the variables of this Saver; make a "
                "Saver in the session's graph"
            )

    def _without_value(self, sess: Session) -> str:
        """Name all variables without a value; a step names those of one device only."""
        missing = [label for label, known in sess.run(self._has_value).items() if not known]
        return (
            f"cannot save: {len(missing)} of {len(self._variables)} variables have no value: "
            f"{listing(missing, 40)}; run hr.global_variables_initializer() first, or restore a "
            "checkpoint"
        )

    def _directory(self, folder: Path) -> CheckpointDirectory:
        known = self._directories.get(folder)
        if known is None:
            known = CheckpointDirectory(folder, max_to_keep=self.max_to_keep)
            self._directories[folder] = known
            if self.max_to_keep is None:
                _log.info("checkpoints in %s: all are kept", folder)
            else:
                _log.info(
                    "checkpoints in %s: the latest %d of each series are kept, older ones are "
                    "deleted",
                    folder,
                    self.max_to_keep,
                )
        return known


def _by_name(
    var_list: Sequence[Variable] | Mapping[str, Variable] | None,
) -> dict[str, Variable]:
    """Return the variables to save, each by its name in the file."""
    if var_list is None:
        pairs = [(v.op_name, v) for v in hr.global_variables()]
    elif isinstance(var_list, Mapping):
        pairs = list(var_list.items())
    else:
        pairs = [(getattr(v, "op_name", ""), v) for v in var_list]
    if not pairs:
        raise CheckpointError(
            "there are no variables to save: make the Saver after the model, or pass var_list"
        )
    for _, variable in pairs:
        if not isinstance(variable, Variable):
            raise GraphError(f"a Saver saves variables, got {variable!r}")
        if variable.graph is not pairs[0][1].graph:
            raise GraphError("the variables of a Saver must belong to one graph")
    names = [label for label, _ in pairs]
    twice = sorted({label for label in names if names.count(label) > 1})
    if twice:
        raise CheckpointError(f"variables are listed twice: {listing(twice)}")
    return dict(pairs)


def _fault(label: str, variable: Variable, reader: CheckpointReader) -> str:
    """Say why a variable cannot be restored, empty if it can."""
    entry = reader.tensors.get(label)
    if entry is None:
        return f"{label!r} is not in it{reader.suggestion(label)}"
    if entry.dtype != variable.dtype.name:
        return f"{label!r} has dtype {variable.dtype}, in the checkpoint {entry.dtype}"
    if not variable.shape.is_compatible_with(entry.shape):
        return f"{label!r} has shape {variable.shape}, in the checkpoint {list(entry.shape)}"
    return ""


def _split(save_path: str | Path) -> tuple[Path, str]:
    """Return the folder of a checkpoint, and its name without the suffix."""
    if not isinstance(save_path, str | Path):
        raise CheckpointError(
            f"save_path must be the path of a checkpoint, got {save_path!r}; latest_checkpoint "
            "returns None where a folder has none"
        )
    text = str(save_path)
    path = Path(text)
    if not path.name or text.endswith(("/", "\\")):
        raise CheckpointError(
            f"{text!r} is no path of a checkpoint: expected one that ends in the name of a file"
        )
    return path.parent, path.name.removesuffix(_SUFFIX)


def _existing(save_path: str | Path) -> Path:
    """Return the file that ``save`` wrote for a path."""
    folder, base = _split(save_path)
    whole = folder / (base + _SUFFIX)
    as_given = Path(save_path)
    return as_given if as_given.is_file() and not whole.is_file() else whole


def _whole(step: Any) -> int | None:
    if step is None:
        return None
    try:
        return operator.index(step)
    except TypeError:
        raise CheckpointError(f"global_step must be a whole number, got {step!r}") from None
