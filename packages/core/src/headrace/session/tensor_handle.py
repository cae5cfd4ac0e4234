"""Handles to tensors that a session keeps between steps."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, final

from headrace.dtypes import DType
from headrace.errors import DTypeError
from headrace.ops.session_tensor import delete_session_tensor, get_session_tensor

if TYPE_CHECKING:
    from headrace.session.session import Session


@final
class TensorHandle:
    """A tensor that a session keeps, which it returns for ``get_session_handle``.

    It can be fed for the placeholder of ``get_session_tensor``, and for any other tensor of its
    dtype. The session lets go of the tensor when the handle is deleted, or nobody has it any more.

    Attributes:
        handle: The string by which the session finds the tensor.
        dtype: The dtype of the tensor.
    """

    __slots__ = ("_alive", "_session", "dtype", "handle")

    def __init__(self, handle: Any, dtype: DType, session: Session) -> None:
        """Stand for a tensor.

        Args:
            handle: The string by which the session finds it.
            dtype: The dtype of the tensor.
            session: The session.
        """
        self.handle = handle.decode() if isinstance(handle, bytes) else str(handle)
        self.dtype = dtype
        self._session = session
        self._alive = True

    def eval(self) -> Any:
        """Return the value of the tensor.

        Raises:
            DTypeError: if it was deleted.
        """
        self._check()
        reader = self._session.kept.reader(self.handle, self.dtype)
        return self._session.run(reader[1], {reader[0]: self.handle})

    def delete(self) -> None:
        """Let go of the tensor.

        Raises:
            DTypeError: if that was done.
        """
        self._check()
        self._alive = False
        self._session.kept.delete(self.handle)

    def get_raw_handle(self) -> str:
        """Return the string; the tensor is kept until ``delete_session_tensor``, then."""
        self._alive = False
        return self.handle

    def _check(self) -> None:
        if not self._alive:
            raise DTypeError(
                f"the tensor {self.handle!r} may have been deleted: its handle was deleted, or "
                "get_raw_handle was called"
            )

    def __str__(self) -> str:
        """Return the string by which the session finds the tensor."""
        return self.handle

    def __repr__(self) -> str:
        """Return string and dtype."""
        return f"<TensorHandle {self.handle!r}, {self.dtype}>"

    def __del__(self) -> None:
        """Let go of the tensor, when the session keeps the next one."""
        if getattr(self, "_alive", False):
            self._session.kept.forget(self.handle)


@final
class Kept:
    """What a session needs for its handles: the operations that read and delete, made once."""

    def __init__(self, session: Session) -> None:
        """Begin without any.

        Args:
            session: The session.
        """
        # The session has this; a cycle would keep it open until the next collection.
        self._session_of = weakref.ref(session)
        self._readers: dict[tuple[str, DType], tuple[Any, Any]] = {}
        self._deleters: dict[str, tuple[Any, Any]] = {}
        # Handles that nobody has any more.
        self._forgotten: list[str] = []

    @property
    def _session(self) -> Session:
        session = self._session_of()
        assert session is not None
        return session

    def handle(self, found: Any, dtype: DType) -> TensorHandle:
        """Return the handle of a tensor that a step kept."""
        while self._forgotten:
            self.delete(self._forgotten.pop())
        return TensorHandle(found, dtype, self._session)

    def reader(self, handle: str, dtype: DType) -> tuple[Any, Any]:
        """Return a placeholder for a handle, and the tensor."""
        key = (handle.rpartition(";")[2], dtype)
        if key not in self._readers:
            with self._session.graph.as_default():
                self._readers[key] = get_session_tensor(handle, dtype)
        return self._readers[key]

    def delete(self, handle: str) -> None:
        """Let go of a tensor."""
        place = handle.rpartition(";")[2]
        if place not in self._deleters:
            with self._session.graph.as_default():
                self._deleters[place] = delete_session_tensor(handle)
        holder, deleter = self._deleters[place]
        self._session.run(deleter, {holder: handle})

    def forget(self, handle: str) -> None:
        """Let go of a tensor at the next occasion; may be called from any thread."""
        self._forgotten.append(handle)
