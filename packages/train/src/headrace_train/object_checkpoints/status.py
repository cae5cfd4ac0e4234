"""What becomes of the objects of a checkpoint: matched with those of a program, and restored."""

from __future__ import annotations

import abc
from collections import deque
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

import headrace as hr
from headrace import Variable
from headrace.errors import (
    CheckpointDamagedError,
    CheckpointMismatchError,
    listing,
    shown,
)
from headrace_io.protos.pool import parsed
from headrace_train.checkpoint.opening import OpenCheckpoint
from headrace_train.object_checkpoints.objects import (
    GRAPH_KEY,
    VALUE,
    Node,
    objects_in,
    objects_of,
)
from headrace_train.object_checkpoints.sessions import session_or_default
from headrace_train.optimizers import Optimizer
from headrace_train.saver import Saver

if TYPE_CHECKING:
    from headrace_train.object_checkpoints.checkpoint import Checkpoint

_NOTHING = "No checkpoint specified (save_path=None); nothing is being restored."


class UnmatchedError(CheckpointMismatchError, AssertionError):
    """A program and a checkpoint do not have the same objects; TensorFlow asserts it."""


class LoadStatus(abc.ABC):
    """What ``Checkpoint.restore`` returns."""

    def __init__(self, root: Checkpoint) -> None:
        self._root = root

    @abc.abstractmethod
    def assert_consumed(self) -> Self:
        """Refuse unless each object of the checkpoint is there, and each that is there is in it.

        Raises:
            UnmatchedError: if one is not, an AssertionError.
        """

    @abc.abstractmethod
    def assert_existing_objects_matched(self) -> Self:
        """Refuse unless each object that is there is in the checkpoint.

        Raises:
            UnmatchedError: if one is not, an AssertionError.
        """

    @abc.abstractmethod
    def assert_nontrivial_match(self) -> Self:
        """Refuse if nothing but the root is in both.

        Raises:
            UnmatchedError: if so, an AssertionError.
        """

    @abc.abstractmethod
    def run_restore_ops(self, session: Any = None) -> None:
        """Restore what is in both.

        Args:
            session: The session; the default one if None.

        Raises:
            CheckpointError: if a variable has another dtype or shape; nothing was changed then.
        """

    @abc.abstractmethod
    def initialize_or_restore(self, session: Any = None) -> None:
        """Restore what is in both, and initialize the other variables of the objects.

        Args:
            session: The session; the default one if None.
        """

    def expect_partial(self) -> Self:
        """Do nothing: there are no warnings of what a checkpoint has besides."""
        return self


@final
class ObjectLoadStatus(LoadStatus):
    """The objects of a checkpoint."""

    def __init__(self, root: Checkpoint, prefix: str, message: Any) -> None:
        """Hold what a checkpoint has."""
        super().__init__(root)
        self._prefix = prefix
        self._saved = message
        self._savers: dict[Any, Saver] = {}

    def assert_consumed(self) -> Self:
        """See the base class."""
        self.assert_existing_objects_matched()
        matched = self._matched()
        missing = [path for number, path in enumerate(_paths(self._saved)) if number not in matched]
        if missing:
            raise UnmatchedError(
                f"Unresolved object in checkpoint {self._prefix}: {listing(missing)} are in it and "
                "the program has no such attributes; assert_existing_objects_matched() allows that"
            )
        return self

    def assert_existing_objects_matched(self) -> Self:
        """See the base class."""
        known = {id(found) for found in self._matched().values()}
        unknown = [node for node in objects_of(self._root) if id(node.found) not in known]
        if unknown:
            raise UnmatchedError(
                "Some Python objects were not bound to checkpointed values, likely due to changes "
                f"in the Python program: {_named(unknown)} are not in {self._prefix}"
            )
        return self

    def assert_nontrivial_match(self) -> Self:
        """See the base class."""
        if len(self._matched()) > 1:
            return self
        unknown = objects_of(self._root)[1:]
        if unknown:
            raise UnmatchedError(
                "Nothing except the root object matched a checkpointed value. The following "
                f"objects have no matching checkpointed value: {_named(unknown)}"
            )
        raise UnmatchedError(f"Nothing to load. No objects have been added to {self._root!r} yet.")

    def run_restore_ops(self, session: Any = None) -> None:
        """See the base class."""
        sess = session_or_default(session)
        values = self._values()
        if not values:
            return
        key = tuple((name, id(variable)) for name, variable in values.items())
        if key not in self._savers:
            with sess.graph.as_default():
                self._savers[key] = Saver(values, max_to_keep=None)
        self._savers[key].restore(sess, self._prefix)

    def initialize_or_restore(self, session: Any = None) -> None:
        """See the base class."""
        sess = session_or_default(session)
        self.run_restore_ops(sess)
        known = {id(variable) for variable in self._values().values()}
        _initialize(sess, [v for v in _variables(self._root) if id(v) not in known])

    def _values(self) -> dict[str, Variable]:
        """Return the variables that have a value in the checkpoint, by its name there."""
        values = {}
        for number, found in self._matched().items():
            for attribute in self._saved.nodes[number].attributes:
                if isinstance(found, Variable) and attribute.name == VALUE:
                    values[attribute.checkpoint_key] = found
        return values

    def _matched(self) -> dict[int, Any]:
        """Return which object each one of the checkpoint is, as far as it is there by now."""
        nodes = self._saved.nodes
        matched: dict[int, Any] = {0: self._root}
        taken = {id(self._root)}

        def match(number: int, found: Any) -> bool:
            if number in matched or id(found) in taken:
                return False
            matched[number] = found
            taken.add(id(found))
            return True

        waiting = deque([0])
        while waiting:
            number = waiting.popleft()
            held = objects_in(matched[number])
            for child in nodes[number].children:
                found = held.get(child.local_name)
                if found is not None and match(child.node_id, found):
                    waiting.append(child.node_id)
        for number, optimizer in list(matched.items()):
            if not isinstance(optimizer, Optimizer):
                continue
            for reference in nodes[number].slot_variables:
                variable = matched.get(reference.original_variable_node_id)
                slot = None
                if isinstance(variable, Variable):
                    slot = optimizer.get_slot(variable, reference.slot_name)
                if slot is not None:
                    match(reference.slot_variable_node_id, slot)
        return matched


@final
class InitializationOnlyStatus(LoadStatus):
    """No checkpoint: variables are initialized."""

    def assert_consumed(self) -> Self:
        """Refuse: there is nothing to consume."""
        raise UnmatchedError(_NOTHING)

    def assert_existing_objects_matched(self) -> Self:
        """Refuse: there is nothing to match."""
        raise UnmatchedError(_NOTHING)

    def assert_nontrivial_match(self) -> Self:
        """Refuse: there is nothing to match."""
        raise UnmatchedError(_NOTHING)

    def run_restore_ops(self, session: Any = None) -> None:
        """Refuse: there is nothing to restore."""
        del session
        raise UnmatchedError(
            "No checkpoint specified, so no restore ops are available (save_path=None to "
            "Checkpoint.restore)."
        )

    def initialize_or_restore(self, session: Any = None) -> None:
        """Initialize the variables of the objects."""
        _initialize(session_or_default(session), _variables(self._root))


@final
class NameBasedSaverStatus(LoadStatus):
    """A checkpoint of a ``Saver``, which has names of variables and no objects."""

    def __init__(self, root: Checkpoint, prefix: str, names: frozenset[str]) -> None:
        """Hold what names a checkpoint has."""
        super().__init__(root)
        self._prefix = prefix
        self._names = names

    def assert_consumed(self) -> Self:
        """See the base class."""
        self.assert_existing_objects_matched()
        unused = self._names - {v.op_name for v in self._restored()}
        if unused:
            raise UnmatchedError(
                f"in {self._prefix} and no variables of the objects: {listing(sorted(unused))}"
            )
        return self

    def assert_existing_objects_matched(self) -> Self:
        """See the base class."""
        missing = {v.op_name for v in self._restored()} - self._names
        if missing:
            raise UnmatchedError(
                f"Object not restored: {listing(sorted(missing))} are not in {self._prefix}"
            )
        return self

    def assert_nontrivial_match(self) -> Self:
        """See the base class."""
        if not self._names & {v.op_name for v in self._restored()}:
            raise UnmatchedError(f"nothing of the objects is in {self._prefix}")
        return self

    def run_restore_ops(self, session: Any = None) -> None:
        """See the base class; all variables must be in the checkpoint."""
        self._restore(session_or_default(session), self._restored())

    def initialize_or_restore(self, session: Any = None) -> None:
        """See the base class."""
        sess = session_or_default(session)
        _initialize(sess, [v for v in _variables(self._root) if v.op_name not in self._names])
        self._restore(sess, [v for v in self._restored() if v.op_name in self._names])

    def _restore(self, session: Any, variables: list[Variable]) -> None:
        if variables:
            with session.graph.as_default():
                saver = Saver({v.op_name: v for v in variables}, max_to_keep=None)
            saver.restore(session, self._prefix)

    def _restored(self) -> list[Variable]:
        """Return the variables of the objects, but for the counter, which a Saver does not know."""
        own = self._root.save_counter
        return [v for v in _variables(self._root) if v is not own or own.op_name in self._names]


def graph_in(reader: OpenCheckpoint) -> Any:
    """Return the objects that a checkpoint was written of.

    Raises:
        CheckpointDamagedError: if they make no sense.
    """
    value = np.asarray(reader.read([GRAPH_KEY])[GRAPH_KEY], object)
    try:
        message = parsed("TrackableObjectGraph", value.item(), "the objects of a checkpoint")
    except hr.errors.DataLossError as reason:
        raise CheckpointDamagedError(f"{reader.path}: {reason}") from reason
    count = len(message.nodes)
    numbers = [
        number
        for node in message.nodes
        for number in (
            *(child.node_id for child in node.children),
            *(slot.original_variable_node_id for slot in node.slot_variables),
            *(slot.slot_variable_node_id for slot in node.slot_variables),
        )
    ]
    if not count or not all(0 <= number < count for number in numbers):
        raise CheckpointDamagedError(f"{reader.path}: its objects refer to some that it lacks")
    return message


def _paths(message: Any) -> list[str]:
    """Return how one gets to each object of a checkpoint."""
    paths = {0: "(root)"}
    waiting = deque([0])
    while waiting:
        number = waiting.popleft()
        for child in message.nodes[number].children:
            if child.node_id not in paths:
                paths[child.node_id] = f"{paths[number]}.{child.local_name}"
                waiting.append(child.node_id)
    for number in list(paths):
        for slot in message.nodes[number].slot_variables:
            whose = paths.get(slot.original_variable_node_id, "?")
            paths.setdefault(
                slot.slot_variable_node_id, f"{slot.slot_name} of {whose} in {paths[number]}"
            )
    return [paths.get(number, f"object {number}") for number in range(len(message.nodes))]


def _named(nodes: list[Node]) -> str:
    return listing([f"{node.path or '(root)'} ({shown(node.found, 60)})" for node in nodes])


def _variables(root: Checkpoint) -> list[Variable]:
    return [node.found for node in objects_of(root) if isinstance(node.found, Variable)]


def _initialize(session: Any, variables: list[Variable]) -> None:
    if variables:
        session.run([variable.initializer for variable in variables])
