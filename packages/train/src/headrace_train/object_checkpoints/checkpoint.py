"""``Checkpoint``: saves the variables of objects, and restores them into objects alike."""

from __future__ import annotations

import os
from typing import Any, final

import headrace as hr
from headrace import Graph, Variable
from headrace.errors import AttributeValueError, shown
from headrace.extend.state import Saveable
from headrace_train.checkpoint.opening import open_checkpoint
from headrace_train.checkpoint.paths import as_prefix
from headrace_train.checkpoint.state import write_state
from headrace_train.object_checkpoints.objects import (
    GRAPH_KEY,
    as_message,
    is_tracked,
    objects_in,
    objects_of,
    values_of,
)
from headrace_train.object_checkpoints.sessions import session_or_default
from headrace_train.object_checkpoints.status import (
    InitializationOnlyStatus,
    LoadStatus,
    NameBasedSaverStatus,
    ObjectLoadStatus,
    graph_in,
)
from headrace_train.saver import Saver
from headrace_train.tracked import Tracked


@final
class Checkpoint(Tracked):
    """Saves and restores what some objects hold: variables, layers, optimizers, checkpoints.

    A value is found by the attributes that lead to it, as in ``layer/kernel``, and not by the name
    of its variable, so that a program may name and scope its variables anew. An optimizer is saved
    with its state for those of the variables that are saved, too.

    Objects are attributes: those given here, and those that a program sets later. Files are those
    of ``Saver``; those that TensorFlow's ``Checkpoint`` wrote can be restored.
    """

    def __init__(self, **kwargs: Any) -> None:
        """Choose what is saved.

        Args:
            **kwargs: Objects, by the names of the attributes that they become.

        Raises:
            AttributeValueError: if a value is no such object.
        """
        self._save_counter: Variable | None = None
        self._counting: Any = None
        # The ops of each set of objects, which are made once.
        self._savers: dict[Any, Saver] = {}
        for name, value in sorted(kwargs.items()):
            if not is_tracked(value):
                raise AttributeValueError(
                    f"`Checkpoint` was expecting a trackable object for {name!r}: a variable, "
                    f"layer, cell, optimizer or Checkpoint, got {shown(value)}"
                )
            setattr(self, name, value)

    def _tracked(self) -> dict[str, Any]:
        own = ("_save_counter", "_counting", "_savers")
        held = {name: value for name, value in vars(self).items() if name not in own}
        if self._save_counter is not None:
            held["save_counter"] = self._save_counter
        return objects_in(held)

    @property
    def save_counter(self) -> Variable:
        """[], int64: how often ``save`` was called. Made when it is first asked for."""
        if self._save_counter is None:
            with hr.device("/cpu:0"), hr.control_dependencies(None):
                self._save_counter = Variable(
                    0, name="save_counter", dtype=hr.int64, trainable=False
                )
        return self._save_counter

    def save(self, file_prefix: Any, session: Any = None) -> str:
        """Count, write a checkpoint under that number, and say that it is the folder's latest one.

        Args:
            file_prefix: The prefix of its files, which a dash and the number follow.
            session: The session; the default one if None.

        Returns:
            The prefix with the number, which ``restore`` takes.

        Raises:
            UninitializedError: if variables have no value.
            CheckpointError: if it cannot be written.
        """
        sess = session_or_default(session)
        number = self.count(sess)
        path = self.write(f"{as_prefix(file_prefix)}-{number}", sess)
        write_state(os.path.dirname(path), path, [path], relative=True)  # noqa: PTH120 - TensorFlow's form of the path
        return path

    def write(self, file_prefix: Any, session: Any = None) -> str:
        """Write a checkpoint, and nothing else.

        Args:
            file_prefix: The prefix of its files.
            session: The session; the default one if None.

        Returns:
            The prefix, which ``restore`` takes.
        """
        sess = session_or_default(session)
        with sess.graph.as_default():
            saver = self._saver(sess.graph)
        path = saver.save(sess, file_prefix, write_meta_graph=False, write_state=False)
        assert path is not None
        return path

    def restore(self, save_path: Any) -> LoadStatus:
        """Prepare to restore what a checkpoint has; ``run_restore_ops`` of the result does it.

        Args:
            save_path: What ``save``, ``write`` or ``hr.train.latest_checkpoint`` returned. None
                for variables that are only initialized. A checkpoint of a ``Saver`` is matched by
                the names of variables.

        Returns:
            What ran, and can be asserted: ``assert_consumed``, ``run_restore_ops`` and others.
            Objects that are added later are matched, too.

        Raises:
            CheckpointError: if there is no such checkpoint, or it cannot be read.
        """
        status = self._status(save_path)
        _ = self.save_counter
        return status

    def _status(self, save_path: Any) -> LoadStatus:
        if save_path is None:
            return InitializationOnlyStatus(self)
        prefix = as_prefix(save_path)
        with open_checkpoint(prefix) as reader:
            if GRAPH_KEY not in reader.tensors:
                return NameBasedSaverStatus(self, prefix, frozenset(reader.tensors))
            message = graph_in(reader)
        return ObjectLoadStatus(self, prefix, message)

    def count(self, session: Any) -> int:
        """Add one to the number of checkpoints, and return it."""
        fresh = self._save_counter is None
        counter = self.save_counter
        if fresh:
            session.run(counter.initializer)
        if self._counting is None:
            with counter.graph.as_default(), hr.control_dependencies(None):
                self._counting = counter.assign_add(1)
        return int(session.run(self._counting))

    def _saver(self, graph: Graph) -> Saver:
        nodes = objects_of(self)
        values = values_of(nodes)
        text = as_message(nodes).SerializeToString(deterministic=True)
        key = (text, tuple(map(id, values.values())))
        if key not in self._savers:
            with graph.as_default(), hr.control_dependencies(None), hr.device("/cpu:0"):
                listed = Saveable(
                    GRAPH_KEY,
                    hr.constant(text, hr.string),
                    hr.constant(True),
                    lambda value: value.op,
                )
                self._savers[key] = Saver({**values, GRAPH_KEY: listed}, max_to_keep=None)
        return self._savers[key]
