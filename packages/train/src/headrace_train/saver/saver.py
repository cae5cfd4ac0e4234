"""The class that programs use to save the variables of a session, and to restore them."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, final

import headrace as hr
from headrace import Graph, Tensor
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    CheckpointError,
    CheckpointMismatchError,
    FailedPreconditionError,
    HeadraceError,
    UnimplementedError,
    UninitializedError,
    listing,
    shown,
)
from headrace.extend.arguments import items, mapping
from headrace.extend.faults import fault_point
from headrace_io import protos
from headrace_train.checkpoint.files import replaced
from headrace_train.checkpoint.paths import as_prefix, file_of, split
from headrace_train.checkpoint.removal import meta_graph_file
from headrace_train.checkpoint.state import get_checkpoint_mtimes, state_file
from headrace_train.resumption import run_state as resumption
from headrace_train.saver import definition
from headrace_train.saver.arguments import check_list, known_checkpoint, number, step_in
from headrace_train.saver.commit import commit, in_folder
from headrace_train.saver.graph import Names, Slot, build, check_has, notes_of, slots_of
from headrace_train.saver.matching import RestoreReport, compare, refusal
from headrace_train.saver.notes import encode_notes
from headrace_train.saver.retention import Order, Policy, Retention
from headrace_train.saver.snapshot import KEY, MOST_SECS, ONE_MOMENT, one_moment
from headrace_train.saver.variables import all_saveables, items_of

_log = logging.getLogger("headrace.train")


@final
class Saver:
    """Saves variables to checkpoints and restores them, whatever the session runs on.

    A checkpoint is written beside its name, read back, compared, and only then takes the name, so
    that a crash at any moment leaves either the old file or the new one. It is an HDF5 file that
    plain h5py reads; each variable is a data set under its name.

    The ops that it needs are added when it is built, under the names that TensorFlow gives them;
    ``save`` and ``restore`` run them, and so may a program.
    """

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: Any = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: int = definition.V2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
        *,
        keep_best: int = 0,
        best_is: Order = "lowest",
        run_state: bool = False,
    ) -> None:
        """Choose what to save.

        Args:
            var_list: The variables, or a dict that gives each the name under which it is saved;
                all global variables that the default graph has now if None, and what is in its
                collection ``GraphKeys.SAVEABLE_OBJECTS``, such as positions of iterators.
            reshape: Whether a variable takes what was saved under another shape of as many
                elements.
            sharded: Whether each task of a cluster saves and restores its own variables, in files
                of their own, instead of the client's task doing it for all.
            max_to_keep: How many of the latest checkpoints stay; None or 0 for all.
            keep_checkpoint_every_n_hours: One more stays for each time that so many hours have
                passed.
            name: The name scope of the ops; ``save`` if None.
            restore_sequentially: Ignored; the tensors of a file are always read one by one.
            saver_def: What ``as_saver_def`` of the saver returned whose ops the default graph has;
                nothing is added to it then. With ``name``, the ops are in that name scope.
            builder: Refused; a saver adds its ops itself.
            defer_build: Whether the ops are added when ``build`` is called instead of now.
            allow_empty: Whether there may be no variables; ``save`` writes the graph alone then,
                and ``restore`` does nothing.
            write_version: ``SaverDef.V2`` or ``SaverDef.V1``; the files are the same.
            pad_step_number: Whether steps in names have eight digits at least.
            save_relative_paths: Whether the file ``checkpoint`` holds paths relative to its
                folder.
            filename: What is saved to, and restored from, where a program runs the ops itself and
                feeds no path; ``model`` if None.
            keep_best: How many of those with the best ``metric`` stay besides.
            best_is: Whether the best are those with the ``"lowest"`` or the ``"highest"`` metric.
            run_state: Whether to save and restore, beside the variables, what else a run needs to
                go on exactly: positions of iterators, contents of queues, random streams. Without
                it random streams are saved, if ``var_list`` is None, and not restored.

        Raises:
            ArgumentTypeError: if ``var_list`` is none.
            CheckpointError: if there are no variables, two have one name, or a limit is negative.
            GraphError: if they are no variables of one graph, or with ``run_state`` a queue runner
                fills a queue, whose place in its inputs cannot be saved.
        """
        if defer_build and var_list:
            raise AttributeValueError(
                "If `var_list` is provided then build cannot be deferred. Either set "
                "defer_build=False or var_list=None."
            )
        definition.check_builder(builder)
        definition.check_version(write_version)
        self._var_list = var_list
        self._run_state = run_state
        self._reshape = reshape
        self._sharded = sharded
        self._name = name
        self._allow_empty = allow_empty
        self._write_version = write_version
        self._pad = pad_step_number
        self._relative = save_relative_paths
        self._filename = filename
        self._retention = Retention(
            Policy(max_to_keep or None, keep_checkpoint_every_n_hours, keep_best, best_is)
        )
        self._lock = threading.RLock()
        self._logged: set[str] = set()
        self._empty: bool | None = None
        self._graph: Graph | None = None
        self._names: Names | None = None
        self._slots: list[Slot] | None = None
        self._has_value: dict[str, Tensor] = {}
        # The graph as it was last written, with what changes when it grows.
        self._written_graph: tuple[Any, bytes] | None = None
        self._saver_def = saver_def
        if saver_def is not None:
            definition.check_definition(saver_def)
            self._adopt_definition()
        elif not defer_build:
            self.build()

    def build(self) -> None:
        """Add the ops, where ``defer_build`` was set; nothing happens if they are there already.

        Raises:
            CheckpointError: as the constructor.
        """
        if self._names is not None or self._empty:
            return
        var_list = all_saveables() if self._var_list is None else self._var_list
        items = items_of(var_list)
        if not items:
            if not self._allow_empty:
                raise CheckpointError(
                    "there are no variables to save: make the Saver after the model, or pass "
                    "var_list"
                )
            self._empty = True
            return
        self._empty = False
        self._graph = items[0].target.graph
        self._names = build(items, self._name, self._filename, self._sharded, self._reshape)
        scope = self._names.save.rpartition("/")[0]
        with self._graph.as_default(), hr.control_dependencies(None), hr.name_scope(f"{scope}/"):
            self._has_value = {str(item): item.target.is_initialized() for item in items}
        resumption.prepare(self._graph, self.run_state_kinds)

    @property
    def run_state_kinds(self) -> AbstractSet[resumption.Kind]:
        """What it saves of the state of a run."""
        if self._run_state:
            return resumption.EVERYTHING
        whole = self._var_list is None and self._saver_def is None
        return resumption.STREAMS if whole else frozenset()

    # -- saving

    def save(
        self,
        sess: Any,
        save_path: Any,
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
        *,
        metadata: Mapping[str, Any] | None = None,
        metric: float | None = None,
        consistent: bool = False,
    ) -> str | None:
        """Write a checkpoint.

        Args:
            sess: A session of the saver's graph, or of one with ops of the same names, in which all
                its variables have values.
            save_path: The prefix of its files; folders are made where they are missing.
            global_step: The step, which follows the prefix after a dash: a number, or a variable,
                a tensor or its name to fetch it from.
            latest_filename: The name of the file that says which checkpoint is the latest one;
                ``checkpoint`` if None.
            meta_graph_suffix: The suffix of the file with the graph.
            write_meta_graph: Whether to write the graph beside it.
            write_state: Whether to say in the folder that it is the latest checkpoint, and to
                delete older ones.
            strip_default_attrs: Whether to leave attributes with their defaults out of the graph.
            save_debug_info: Refused; a graph keeps the lines of the program itself.
            metadata: Anything else worth keeping, a JSON object, such as the state of a data set.
            metric: How good it is, for ``keep_best``.
            consistent: Whether all that is saved is of one moment, even while other threads or
                tasks train: their steps that change variables wait, those under way are waited for.

        Returns:
            The prefix with the step, which ``restore`` takes. None if the saver is empty.

        Raises:
            ArgumentTypeError: if ``sess`` or a path is none.
            UninitializedError: if variables have no value; all are named.
            CheckpointError: if a name is impossible or the file cannot be written; nothing has
                been deleted then.
            DeadlineExceededError: if ``consistent``, and steps are under way for a minute.
        """
        if save_debug_info:
            raise UnimplementedError(
                "save_debug_info is not written: graphs and their documents hold the lines of the "
                "program that made them"
            )
        self._check_built("save")
        fault_point("save")
        prefix = as_prefix(save_path)
        folder, base = split(prefix)
        # Checked before anything is touched.
        state = state_file(Path(folder), latest_filename)
        if global_step is None and base == state.name and not self._sharded:
            raise CheckpointMismatchError(
                f"'latest_filename' collides with 'save_path': '{state.name}' and '{prefix}'"
            )
        self._check(sess)
        with contextlib.ExitStack() as stack:
            metadata = mapping(metadata, "metadata")
            if consistent:
                stack.enter_context(one_moment(sess, MOST_SECS))
                metadata[KEY] = ONE_MOMENT
            step = step_in(sess, global_step)
            if step is not None:
                prefix = as_prefix(f"{prefix}-{step:08d}" if self._pad else f"{prefix}-{step}")
            if self._empty:
                if write_meta_graph:
                    stack.enter_context(in_folder(prefix))
                    self._write_meta_graph(sess, prefix, meta_graph_suffix, strip_default_attrs)
                return None
            rank = number(metric)
            notes = encode_notes(step, {**self._state_of_run(sess), **metadata})
            stack.enter_context(self._lock)
            stack.enter_context(in_folder(prefix))
            if write_state:
                self._log_policy(folder)
                commit(
                    self._retention,
                    prefix,
                    lambda: self._run_save(sess, prefix, notes),
                    latest_filename=latest_filename,
                    relative_paths=self._relative,
                    metric=rank,
                    meta_graph_suffix=meta_graph_suffix,
                )
            else:
                self._run_save(sess, prefix, notes)
            if write_meta_graph:
                self._write_meta_graph(sess, prefix, meta_graph_suffix, strip_default_attrs)
        _log.info("saved %s", file_of(prefix))
        return prefix

    def _state_of_run(self, sess: Any) -> dict[str, Any]:
        kinds = self.run_state_kinds
        resumption.prepare(sess.graph, kinds)
        return resumption.run_state(sess, kinds, all_of_it=self._run_state)

    def _run_save(self, sess: Any, prefix: str, notes: bytes) -> None:
        assert self._names is not None
        feeds: dict[Any, Any] = {self._names.filename: prefix}
        taken = notes_of(sess.graph, self._names)
        if taken is not None:
            feeds[taken] = notes
        try:
            sess.run(self._names.save, feeds)
        except FailedPreconditionError as error:
            text = self._without_value(sess) if sess.graph is self._graph else ""
            if not text:
                raise
            raise UninitializedError(text) from error

    def _write_meta_graph(self, sess: Any, prefix: str, suffix: str, strip: bool) -> None:
        graph = sess.graph
        sizes = [(key, len(graph.get_collection(key))) for key in graph.get_all_collection_keys()]
        key = (len(graph), tuple(sizes), strip)
        try:
            if self._written_graph is None or self._written_graph[0] != key:
                with graph.as_default():
                    made = self.export_meta_graph(strip_default_attrs=strip)
                self._written_graph = key, made.SerializeToString(deterministic=True)
            with replaced(meta_graph_file(prefix, suffix)) as temporary:
                temporary.write_bytes(self._written_graph[1])
        except (HeadraceError, OSError) as reason:
            _log.warning("the graph of the checkpoint %s was not written: %s", prefix, reason)

    def export_meta_graph(
        self,
        filename: str | None = None,
        collection_list: Any = None,
        as_text: bool = False,
        export_scope: str | None = None,
        clear_devices: bool = False,
        clear_extraneous_savers: bool = False,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> Any:
        """Return the default graph with this saver as a ``MetaGraphDef``, and perhaps write it.

        Args:
            filename: Where to write it; nowhere if None.
            collection_list: The keys of the collections to put into it; all if None.
            as_text: Whether to write text.
            export_scope: The name scope to export; the whole graph if None.
            clear_devices: Whether to leave out which devices are asked for.
            clear_extraneous_savers: Whether to leave out the ops of other savers.
            strip_default_attrs: Whether to leave out attributes with their defaults.
            save_debug_info: Refused.
        """
        return hr.train.export_meta_graph(
            filename=filename,
            saver_def=self.saver_def,
            collection_list=collection_list,
            as_text=as_text,
            export_scope=export_scope,
            clear_devices=clear_devices,
            clear_extraneous_savers=clear_extraneous_savers,
            strip_default_attrs=strip_default_attrs,
            save_debug_info=save_debug_info,
        )

    # -- restoring

    def restore(
        self, sess: Any, save_path: Any, *, strict: bool = True, run_state: bool | None = None
    ) -> RestoreReport | None:
        """Give the variables the values that they had when a checkpoint was written.

        They need no initialization before. Either all of them are assigned, or none is.

        Args:
            sess: A session of the saver's graph, or of one with ops of the same names.
            save_path: What ``save`` returned, or a file.
            strict: Whether all variables must be in the checkpoint as they are in the graph. If
                not, those that are there and fit are restored.
            run_state: Whether to put back the state of the run, such as random streams, too; as
                the saver was made if None. Iterators are initialized before.

        Returns:
            None if ``strict``, else what was restored, and what was missing, unexpected or
            different.

        Raises:
            ArgumentTypeError: if ``save_path`` is no path.
            CheckpointError: if it is None, if the file is missing, foreign, truncated or damaged,
                or, if ``strict``, variables are not in it or differ in dtype or shape; all are
                named.
        """
        if self._empty:
            return None
        if save_path is None:
            raise CheckpointError(
                "Can't load save_path when it is None: latest_checkpoint returns None where a "
                "folder has no checkpoint"
            )
        self._check_built("restore")
        prefix = as_prefix(save_path)
        self._check(sess)
        assert self._names is not None
        slots = self._find_slots(sess.graph)
        with known_checkpoint(prefix) as reader:
            report = compare([slot.wanted for slot in slots], reader.tensors)
            if strict and (report.missing or report.mismatched):
                raise refusal(report, reader.path)
            arrays = {} if strict else reader.read(report.restored)
            where = reader.path
        if strict:
            sess.run(self._names.restore, {self._names.filename: prefix})
        else:
            chosen = [slot for slot in slots if slot.wanted.name in arrays]
            sess.run(
                [slot.write for slot in chosen],
                {slot.value: slot.part.of(arrays[slot.wanted.name]) for slot in chosen},
            )
            for line in str(report).splitlines()[1:]:
                _log.warning("%s: %s", where, line.strip())
        if self._run_state if run_state is None else run_state:
            resumption.prepare(sess.graph, resumption.EVERYTHING)
            if not resumption.restore_run_state(sess, prefix):
                _log.warning(
                    "%s has no state of a run: inputs and random streams begin anew", where
                )
        _log.info("restored %d variables from %s", len(report.restored), where)
        return None if strict else report

    def _find_slots(self, graph: Graph) -> list[Slot]:
        assert self._names is not None
        if graph is not self._graph:
            return slots_of(graph.get_operation_by_name(self._names.restore))
        if self._slots is None:
            self._slots = slots_of(graph.get_operation_by_name(self._names.restore))
        return self._slots

    # -- what was written

    @property
    def max_to_keep(self) -> int | None:
        """How many of the latest checkpoints stay; None for all."""
        return self._retention.policy.latest

    @property
    def last_checkpoints(self) -> list[str]:
        """The checkpoints that are among the latest, the latest last; none if all are kept."""
        return [path for path, _ in self._retention.latest]

    @property
    def best_checkpoints(self) -> list[tuple[str, float]]:
        """The best checkpoints, each with its metric, the best first."""
        return list(self._retention.best)

    def set_last_checkpoints(self, last_checkpoints: list[str]) -> None:
        """Say which checkpoints are the latest; they are never deleted.

        Args:
            last_checkpoints: Their paths, the latest last.

        Raises:
            AssertionError: if it is no list.
        """
        check_list("last_checkpoints", last_checkpoints)
        self._retention.set_latest((path, float("inf")) for path in last_checkpoints)

    def set_last_checkpoints_with_time(
        self, last_checkpoints_with_time: list[tuple[str, float]]
    ) -> None:
        """Say which checkpoints are the latest, and when they were written.

        Args:
            last_checkpoints_with_time: Their paths, the latest last, each with its time in seconds
                since 1970.

        Raises:
            AssertionError: if it is no list.
        """
        check_list("last_checkpoints_with_time", last_checkpoints_with_time)
        self._retention.set_latest(last_checkpoints_with_time)

    def recover_last_checkpoints(self, checkpoint_paths: Any) -> None:
        """Say which checkpoints are the latest after a restart; what is not there is left out.

        Args:
            checkpoint_paths: Their paths, the latest last, such as the
                ``all_model_checkpoint_paths`` of ``get_checkpoint_state``.
        """
        found = []
        for path in items(checkpoint_paths, "checkpoint_paths", 1 << 16):
            times = get_checkpoint_mtimes([path])
            found += [(path, times[0])] if times else []
        self.set_last_checkpoints_with_time(found)

    # -- what others know of it

    @property
    def saved(self) -> dict[str, Any]:
        """The variables and other state that it saves, by name; parts of a variable by their own.

        ``hr.saved_model`` writes and restores these where a saver is passed to it.
        """
        var_list = all_saveables() if self._var_list is None else self._var_list
        items = [] if self._empty else items_of(var_list)
        return {i.target.op_name if i.part else i.name: i.target for i in items}

    @property
    def saver_def(self) -> Any:
        """The ``SaverDef`` of the saver; None before it is built, or if it is empty."""
        if self._saver_def is None and self._names is not None:
            policy = self._retention.policy
            self._saver_def = protos.SaverDef(
                filename_tensor_name=self._names.filename,
                save_tensor_name=self._names.save,
                restore_op_name=self._names.restore,
                max_to_keep=policy.latest or 0,
                sharded=self._sharded,
                keep_checkpoint_every_n_hours=policy.hours,
                version=self._write_version,
            )
        return self._saver_def

    def as_saver_def(self) -> Any:
        """Return the ``SaverDef`` of the saver."""
        return self.saver_def

    def to_proto(self, export_scope: str | None = None) -> Any:
        """Return the ``SaverDef`` of the saver.

        Args:
            export_scope: A name scope to leave out of its names; None is returned if they are not
                in it.
        """
        found = self.saver_def
        if export_scope is None or found is None:
            return found
        return definition.unscoped(found, export_scope)

    @staticmethod
    def from_proto(saver_def: Any, import_scope: str | None = None) -> Saver:
        """Return the saver of a ``SaverDef``, whose ops are in the default graph.

        Args:
            saver_def: What ``as_saver_def`` returned.
            import_scope: The name scope in which the graph was loaded.
        """
        return Saver(saver_def=saver_def, name=import_scope)

    def _adopt_definition(self) -> None:
        """Take the ops that a definition names."""
        if self._name:
            self._saver_def = definition.scoped(self._saver_def, self._name)
        found = self._saver_def
        self._sharded = found.sharded
        self._write_version = found.version
        policy = self._retention.policy
        self._retention = Retention(
            Policy(
                found.max_to_keep or None,
                found.keep_checkpoint_every_n_hours,
                policy.best,
                policy.order,
            )
        )
        self._names = definition.names_of(found)
        self._graph = hr.get_default_graph()
        self._empty = False

    # -- checks and messages

    def _check_built(self, what: str) -> None:
        if self._names is None and self._empty is None:
            raise FailedPreconditionError(
                f"`build()` should be called before {what} if defer_build==True"
            )

    def _check(self, sess: Any) -> None:
        if not callable(getattr(sess, "run", None)) or not isinstance(
            getattr(sess, "graph", None), Graph
        ):
            raise ArgumentTypeError(f"'sess' must be a Session; got {shown(sess)}")
        if self._graph is not None and sess.graph is not self._graph:
            check_has(sess.graph, self._names)

    def _without_value(self, sess: Any) -> str:
        """Name all variables without a value; a step names those of one device only."""
        missing = [label for label, known in sess.run(self._has_value).items() if not known]
        if not missing:
            return ""
        return (
            f"cannot save: {len(missing)} of {len(self._has_value)} variables have no value: "
            f"{listing(missing, 40)}; run hr.global_variables_initializer() first, or restore a "
            "checkpoint"
        )

    def _log_policy(self, folder: str) -> None:
        if folder not in self._logged:
            self._logged.add(folder)
            _log.info("checkpoints in %s: %s", folder or ".", self._retention.policy)
