"""Translations of the updates of optimizers, built of assignments."""

from __future__ import annotations

from typing import Any

from headrace import Tensor
from headrace.extend.ops import call_op
from headrace.extend.translations import TranslationTable
from headrace_io.translation.library import hr
from headrace_io.translation.values import Reference

ROWS = TranslationTable()


def _both(name: str) -> tuple[str, str]:
    return f"Apply{name}", f"ResourceApply{name}"


def _value(handle: Tensor) -> Tensor:
    found: Tensor = call_op("ReadVariable", handle)
    return found


def _set(handle: Tensor, value: Tensor) -> Tensor:
    found: Tensor = call_op("AssignVariable", handle, value)
    return found


def _done(node: Any, written: Tensor, *slots: Tensor) -> Any:
    """Return what stands for an update: it is there when the slots are written, too."""
    with hr.control_dependencies([t.op for t in (written, *slots)]):
        if node.op.startswith("Resource"):
            return hr.no_op()
        return Reference(node.handle(0), hr.identity(written))


@ROWS.add(*_both("GradientDescent"))
def _gradient_descent(node: Any) -> Any:
    rate, delta = node.tensor(1), node.tensor(2)
    step = call_op("AssignSubVariable", node.handle(0), rate * delta)
    return _done(node, step)


@ROWS.add(*_both("Momentum"))
def _momentum(node: Any) -> Any:
    rate, grad, momentum = (node.tensor(i) for i in (2, 3, 4))
    slot = _set(node.handle(1), _value(node.handle(1)) * momentum + grad)
    step = slot * rate
    if node.attr("use_nesterov", False):
        step = grad * rate + slot * momentum * rate
    return _done(node, call_op("AssignSubVariable", node.handle(0), step), slot)


@ROWS.add(*_both("Adagrad"))
def _adagrad(node: Any) -> Any:
    rate, grad = node.tensor(2), node.tensor(3)
    slot = _value(node.handle(1))
    if node.attr("update_slots", True):
        slot = _set(node.handle(1), slot + hr.square(grad))
    step = rate * grad * hr.rsqrt(slot)
    return _done(node, call_op("AssignSubVariable", node.handle(0), step), slot)


@ROWS.add(*_both("Adadelta"))
def _adadelta(node: Any) -> Any:
    rate, rho, epsilon, grad = (node.tensor(i) for i in (3, 4, 5, 6))
    slot = _set(node.handle(1), _value(node.handle(1)) * rho + hr.square(grad) * (1 - rho))
    before = _value(node.handle(2))
    update = hr.sqrt(before + epsilon) * hr.rsqrt(slot + epsilon) * grad
    after = _set(node.handle(2), before * rho + hr.square(update) * (1 - rho))
    return _done(node, call_op("AssignSubVariable", node.handle(0), update * rate), slot, after)


@ROWS.add(*_both("Adam"))
def _adam(node: Any) -> Any:
    power1, power2, rate, beta1, beta2, epsilon, grad = (node.tensor(i) for i in range(3, 10))
    m, v = _value(node.handle(1)), _value(node.handle(2))
    m = _set(node.handle(1), m + (grad - m) * (1 - beta1))
    v = _set(node.handle(2), v + (hr.square(grad) - v) * (1 - beta2))
    scaled = rate * hr.sqrt(1 - power2) / (1 - power1)
    direction = beta1 * m + (1 - beta1) * grad if node.attr("use_nesterov", False) else m
    step = direction * scaled / (hr.sqrt(v) + epsilon)
    return _done(node, call_op("AssignSubVariable", node.handle(0), step), m, v)


@ROWS.add(*_both("RMSProp"))
def _rmsprop(node: Any) -> Any:
    rate, rho, momentum, epsilon, grad = (node.tensor(i) for i in range(3, 8))
    ms = _value(node.handle(1))
    ms = _set(node.handle(1), ms + (hr.square(grad) - ms) * (1 - rho))
    moved = _value(node.handle(2)) * momentum + rate * grad * hr.rsqrt(ms + epsilon)
    mom = _set(node.handle(2), moved)
    return _done(node, call_op("AssignSubVariable", node.handle(0), mom), ms, mom)


@ROWS.add(*_both("CenteredRMSProp"))
def _centered_rmsprop(node: Any) -> Any:
    rate, rho, momentum, epsilon, grad = (node.tensor(i) for i in range(4, 9))
    mg, ms = _value(node.handle(1)), _value(node.handle(2))
    ms = _set(node.handle(2), ms + (hr.square(grad) - ms) * (1 - rho))
    mg = _set(node.handle(1), mg + (grad - mg) * (1 - rho))
    spread = hr.rsqrt(ms - hr.square(mg) + epsilon)
    mom = _set(node.handle(3), _value(node.handle(3)) * momentum + rate * grad * spread)
    return _done(node, call_op("AssignSubVariable", node.handle(0), mom), mg, ms, mom)


@ROWS.add("SparseApplyMomentum", "ResourceSparseApplyMomentum")
def _sparse_momentum(node: Any) -> Any:
    rate, grad, rows, momentum = (node.tensor(i) for i in (2, 3, 4, 5))
    moved = hr.gather(_value(node.handle(1)), rows) * momentum + grad
    slot = call_op("ScatterUpdateVariable", node.handle(1), rows, moved)
    step = moved * rate
    if node.attr("use_nesterov", False):
        step = grad * rate + moved * momentum * rate
    return _done(node, call_op("ScatterSubVariable", node.handle(0), rows, step), slot)


@ROWS.add("SparseApplyAdagrad", "ResourceSparseApplyAdagrad")
def _sparse_adagrad(node: Any) -> Any:
    rate, grad, rows = (node.tensor(i) for i in (2, 3, 4))
    slot = _value(node.handle(1))
    if node.attr("update_slots", True):
        slot = call_op("ScatterAddVariable", node.handle(1), rows, hr.square(grad))
    step = rate * grad * hr.rsqrt(hr.gather(slot, rows))
    return _done(node, call_op("ScatterSubVariable", node.handle(0), rows, step), slot)
