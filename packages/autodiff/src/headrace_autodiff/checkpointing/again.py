"""Values of the forward pass, held or computed again.

A copy of an operation starts from what is held, through an ``Identity`` that waits for the
gradients that have arrived. That makes it run late, and keeps it from being merged with what it
copies: passes merge operations only where what they wait for is equal, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headrace import Operation, Tensor, device, identity, name_scope
from headrace.extend.graphs import copied, identity_after

_ORIGIN = "computed again for a gradient"
_FETCHED = "back from the host"
_HOST = "/device:cpu:0"


class Again:
    """What stands for each tensor of the forward pass at the present point of the backward pass."""

    def __init__(
        self, operations: Sequence[Operation], scope: str, *, on_host: bool = False
    ) -> None:
        """Start in the forward pass, where everything stands for itself.

        Args:
            operations: Those that may run again.
            scope: The name scope of the copies.
            on_host: Whether to hold values in the memory of the host.
        """
        self._own = {t for op in operations for t in op.outputs}
        self._scope = scope
        self._on_host = on_host
        self._is_forward = True
        self._holds: list[dict[Tensor, Tensor]] = []
        self._fresh: dict[Tensor, Tensor] = {}
        self._fetched_before: dict[Tensor, Tensor] = {}
        self._started: dict[Tensor, Tensor] = {}
        self._awaited: tuple[Operation, ...] = ()

    def wait_for(self, operations: Iterable[Operation]) -> None:
        """Let what is computed from now on wait for operations."""
        self._awaited = tuple(dict.fromkeys(operations))

    def hold(self, tensors: Iterable[Tensor]) -> None:
        """Compute tensors and keep them until ``drop``."""
        self.renew()
        ordered = sorted(tensors, key=lambda t: (t.op.index, t.index))
        if self._is_forward:
            self._holds.append({t: self._put_away(t) for t in ordered})
        else:
            self._holds.append({t: self.value(t) for t in ordered})
        self.renew()

    def start_from(self, tensors: Mapping[Tensor, Tensor]) -> dict[Tensor, Tensor]:
        """Let everything be computed again from tensors.

        Args:
            tensors: What they stand for, and they themselves.

        Returns:
            What they stand for, and from what exactly the copies are computed.
        """
        self.go_back()
        self._own.update(tensors)
        self._holds.append(dict(tensors))
        return {old: self._late(new) for old, new in tensors.items()}

    def drop(self) -> None:
        """Let go of what was held last."""
        self._holds.pop()

    def go_back(self) -> None:
        """State that gradients are built from now on."""
        self._is_forward = False
        self.renew()

    def renew(self) -> None:
        """Forget what was computed again and is not held."""
        # What came back from the host is mostly wanted by the next stage, too.
        self._fetched_before = self._fresh if self._on_host else {}
        self._fresh = {}
        self._started = {}

    def value(self, tensor: Tensor) -> Tensor:
        """Return what stands for a tensor now, computed again where it is not held."""
        if tensor not in self._own:
            return tensor
        held = self._held(tensor)
        if held is not None:
            return self._fetched(tensor, held) if self._on_host else held
        if tensor not in self._fresh:
            self._compute(tensor)
        return self._fresh[tensor]

    def run_of(self, op: Operation) -> Operation:
        """Return the operation that stands for a loop, condition or call now: it, or a copy."""
        return op if self._on_host else self.value(op.outputs[0]).op

    def _held(self, tensor: Tensor) -> Tensor | None:
        for hold in reversed(self._holds):
            if tensor in hold:
                return hold[tensor]
        return None

    def _compute(self, tensor: Tensor) -> None:
        needed: set[Operation] = set()
        waiting = [tensor]
        while waiting:
            found = waiting.pop()
            known = found not in self._own or found in self._fresh or self._held(found) is not None
            if not known and found.op not in needed:
                needed.add(found.op)
                waiting.extend(found.op.inputs)
        with name_scope(self._scope):
            for op in sorted(needed, key=lambda op: op.index):
                self._copy(op)

    def _copy(self, op: Operation) -> None:
        inputs = [self._input(t) for t in op.inputs]
        if all(new is old for new, old in zip(inputs, op.inputs, strict=True)):
            # Of parameters alone, such as weights in another dtype: late as well, and for itself.
            first = next(i for i, t in enumerate(inputs) if t.dtype.kind != "resource")
            inputs[first] = self._late(inputs[first])
        # The copy of a loop or condition is a run of its own.
        attrs = {"run": ""} if "run" in op.attrs else None
        made = copied(op, inputs, attrs=attrs, origin=_ORIGIN)
        self._fresh.update(
            (old, new)
            for old, new in zip(op.outputs, made.outputs, strict=True)
            if self._held(old) is None
        )

    def _input(self, tensor: Tensor) -> Tensor:
        if tensor not in self._own:
            return tensor
        held = self._held(tensor)
        return self._fresh[tensor] if held is None else self._late(held)

    def _late(self, tensor: Tensor) -> Tensor:
        if tensor not in self._started:
            self._started[tensor] = identity_after(tensor, self._awaited, _ORIGIN)
        return self._started[tensor]

    # -- holding on the host

    def _put_away(self, tensor: Tensor) -> Tensor:
        if not self._on_host or tensor not in self._own:
            return tensor
        with name_scope(self._scope), device(_HOST):
            return identity(tensor, name="to_host")

    def _fetched(self, tensor: Tensor, held: Tensor) -> Tensor:
        if tensor not in self._fresh:
            found = self._fetched_before.get(tensor)
            if found is None:
                # The host waits: what it sends is in the memory of the device at once.
                with name_scope(self._scope):
                    sent = identity_after(held, self._awaited, _FETCHED)
                    found = identity_after(sent, (), _FETCHED, like=tensor.op)
            self._fresh[tensor] = found
        return self._fresh[tensor]
