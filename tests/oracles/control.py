"""Conditions, loops, functions, and derivatives of derivatives."""

from __future__ import annotations

from typing import Any

import headrace as hr

from .libraries import jax, jnp, lax, torch
from .rows import matrix, normal, row, uniform


def _step_ours(h: Any, x: Any, w: Any) -> Any:
    return hr.tanh(hr.add(hr.tensordot(h, w, 1), x))


def _step_theirs(h: Any, x: Any, w: Any) -> Any:
    return jnp.tanh(jnp.add(jnp.tensordot(h, w, 1), x))


def _while_ours(h: Any, w: Any) -> Any:
    """Apply the step until the counter is 4, with a loop of two rounds in each round."""

    def body(i: Any, h: Any) -> Any:
        _, h = hr.while_loop(
            lambda j, _: j < 2, lambda j, h: (j + 1, _step_ours(h, 0.1, w)), (0, h)
        )
        return i + 1, h * 1.1

    return hr.while_loop(lambda i, _: i < 4, body, (0, h))[1]


def _while_theirs(h: Any, w: Any) -> Any:
    def body(_: Any, h: Any) -> Any:
        return lax.fori_loop(0, 2, lambda _, h: _step_theirs(h, 0.1, w), h) * 1.1

    return lax.fori_loop(0, 4, body, h)


def _array_ours(x: Any, w: Any) -> Any:
    """Write running sums into an array in a loop, and stack them."""

    def body(i: Any, total: Any, array: Any) -> Any:
        total = hr.tanh(total + hr.gather(x, i) * w)
        return i + 1, total, array.write(i, total)

    array = hr.TensorArray(x.dtype, size=4)
    return hr.while_loop(lambda i, *_: i < 4, body, (0, hr.zeros_like(w), array))[2].stack()


def _array_theirs(x: Any, w: Any) -> Any:
    def body(total: Any, element: Any) -> Any:
        total = jnp.tanh(total + element * w)
        return total, total

    return lax.scan(body, jnp.zeros_like(w), x)[1]


def _fold_theirs(reverse: bool) -> Any:
    def fold(x: Any, w: Any) -> Any:
        step = lambda h, element: (_step_theirs(h, element, w), None)  # noqa: E731
        return lax.scan(step, jnp.zeros_like(x[0]), x, reverse=reverse)[0]

    return fold


class Cell(hr.rnn_cell.RNNCell):
    """The recurrent cell of PyTorch's ``RNN``, with tensors for weights."""

    def __init__(self, w: Any, u: Any) -> None:
        super().__init__()
        self._w, self._u = w, u

    @property
    def state_size(self) -> int:
        return 4

    @property
    def output_size(self) -> int:
        return 4

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        state = hr.tanh(hr.matmul(inputs, self._w) + hr.matmul(state, self._u))
        return state, state


def _rnn(x: Any, h: Any, weights: dict[str, Any], **rest: Any) -> Any:
    module = torch.nn.RNN(3, 4, bias=False, dtype=x.dtype, **rest)
    return torch.func.functional_call(module, weights, (x, h))


def _one_way(x: Any, h: Any, w: Any, u: Any) -> Any:
    weights = {"weight_ih_l0": w.T, "weight_hh_l0": u.T}
    outputs, state = _rnn(x, h[None], weights, batch_first=True)
    return outputs, state[0]


def _both_ways(x: Any, h: Any, w: Any, u: Any) -> Any:
    weights = {
        f"weight_{kind}_l0{end}": v.T
        for kind, v in {"ih": w, "hh": u}.items()
        for end in ("", "_reverse")
    }
    start = torch.stack([h, 2 * h])
    outputs, _ = _rnn(x, start, weights, batch_first=True, bidirectional=True)
    return outputs


RNN = (normal(2, 5, 3), normal(2, 4), normal(3, 4), normal(4, 4))

ROWS = [
    *[
        row(
            "cond",
            "lax.cond",
            normal(3),
            normal(3),
            ours=lambda x, y, taken=taken: hr.cond(
                hr.reduce_sum(hr.square(x)) > (-1.0 if taken else 1e9),
                lambda: hr.sin(x) * y,
                lambda: hr.exp(y),
            ),
            theirs=lambda x, y, taken=taken: lax.cond(
                jnp.sum(jnp.square(x)) > (-1.0 if taken else 1e9),
                lambda x, y: jnp.sin(x) * y,
                lambda x, y: jnp.exp(y),
                x,
                y,
            ),
            mode="first branch" if taken else "second branch",
        )
        for taken in (True, False)
    ],
    row(
        "case",
        "lax.switch",
        normal(3),
        ours=lambda x: hr.case(
            [
                (hr.reduce_sum(hr.square(x)) < 0.0, lambda: hr.sin(x)),
                (hr.reduce_sum(hr.square(x)) > 0.0, lambda: hr.cos(x)),
            ],
            default=lambda: hr.exp(x),
        ),
        theirs=lambda x: lax.switch(1, [jnp.sin, jnp.cos, jnp.exp], x),
    ),
    row(
        "switch_case",
        "lax.switch",
        normal(3),
        ours=lambda x: hr.switch_case(
            hr.cast(hr.reduce_sum(hr.square(x)) > -1.0, hr.int32) * 2,
            [lambda: hr.sin(x), lambda: hr.cos(x), lambda: hr.exp(x)],
        ),
        theirs=lambda x: lax.switch(2, [jnp.sin, jnp.cos, jnp.exp], x),
    ),
    row(
        "while_loop",
        "lax.fori_loop",
        normal(3),
        matrix(3, 3),
        ours=_while_ours,
        theirs=_while_theirs,
        mode="nested",
    ),
    row(
        "scan",
        "lax.scan",
        normal(5, 3),
        matrix(3, 3),
        ours=lambda x, w: hr.scan(
            lambda h, element: _step_ours(h, element, w), x, hr.zeros_like(x[0])
        ),
        theirs=lambda x, w: lax.scan(
            lambda h, element: (_step_theirs(h, element, w),) * 2, jnp.zeros_like(x[0]), x
        )[1],
    ),
    row(
        "map_fn",
        "lax.map",
        normal(4, 3),
        normal(3),
        ours=lambda x, w: hr.map_fn(lambda element: hr.sin(element) * w, x),
        theirs=lambda x, w: lax.map(lambda element: jnp.sin(element) * w, x),
    ),
    row(
        "foldl",
        "lax.scan",
        normal(5, 3),
        matrix(3, 3),
        ours=lambda x, w: hr.foldl(
            lambda h, element: _step_ours(h, element, w), x, hr.zeros_like(x[0])
        ),
        theirs=_fold_theirs(False),
    ),
    row(
        "foldr",
        "lax.scan",
        normal(5, 3),
        matrix(3, 3),
        ours=lambda x, w: hr.foldr(
            lambda h, element: _step_ours(h, element, w), x, hr.zeros_like(x[0])
        ),
        theirs=_fold_theirs(True),
    ),
    row(
        "TensorArray",
        "lax.scan",
        normal(4, 3),
        normal(3),
        ours=_array_ours,
        theirs=_array_theirs,
    ),
    row(
        "function",
        "jax.jit",
        normal(3),
        matrix(3, 3),
        ours=lambda x, w: (lambda f: f(f(x, w), w))(
            hr.function(lambda h, w: _step_ours(h, 0.2, w))
        ),
        theirs=lambda x, w: (lambda f: f(f(x, w), w))(
            jax.jit(lambda h, w: _step_theirs(h, 0.2, w))
        ),
    ),
    row(
        "recompute_grad",
        "jax.checkpoint",
        normal(3),
        matrix(3, 3),
        ours=lambda x, w: hr.recompute_grad(lambda h, w: _step_ours(h, 0.2, w))(x, w),
        theirs=lambda x, w: jax.checkpoint(lambda h, w: _step_theirs(h, 0.2, w))(x, w),
    ),
    row(
        "gradients",
        "jax.grad",
        uniform(0.2, 1, 3),
        matrix(3, 3),
        ours=lambda x, w: hr.gradients(hr.reduce_sum(_step_ours(x, 0.2, w)), [x, w]),
        theirs=lambda x, w: jax.grad(lambda x, w: jnp.sum(_step_theirs(x, 0.2, w)), argnums=(0, 1))(
            x, w
        ),
    ),
    row(
        "hessians",
        "jax.hessian",
        uniform(0.2, 1, 3),
        matrix(3, 3),
        ours=lambda x, w: hr.hessians(hr.reduce_sum(_step_ours(x, 0.2, w)), x)[0],
        theirs=lambda x, w: jax.hessian(lambda x: jnp.sum(_step_theirs(x, 0.2, w)))(x),
    ),
    row(
        "custom_gradient",
        "jax.custom_vjp",
        normal(3),
        ours=lambda x: hr.custom_gradient(lambda x: (hr.exp(x), lambda dy: dy * 3.0))(x),
        theirs=lambda x: _tripled()(x),
    ),
    row(
        "nn.dynamic_rnn",
        "torch.nn.RNN",
        *RNN,
        ours=lambda x, h, w, u: hr.nn.dynamic_rnn(Cell(w, u), x, initial_state=h),
        theirs=_one_way,
    ),
    row(
        "nn.static_rnn",
        "torch.nn.RNN",
        *RNN,
        ours=lambda x, h, w, u: (lambda outputs, state: (hr.stack(outputs, 1), state))(
            *hr.nn.static_rnn(Cell(w, u), hr.unstack(x, axis=1), h)
        ),
        theirs=_one_way,
    ),
    row(
        "nn.bidirectional_dynamic_rnn",
        "torch.nn.RNN",
        *RNN,
        ours=lambda x, h, w, u: hr.concat(
            hr.nn.bidirectional_dynamic_rnn(
                Cell(w, u),
                Cell(w, u),
                x,
                initial_state_fw=h,
                initial_state_bw=2.0 * h,
            )[0],
            2,
        ),
        theirs=_both_ways,
    ),
]


def _tripled() -> Any:
    """Return the exponential with a slope of three."""
    function = jax.custom_vjp(jnp.exp)
    function.defvjp(lambda x: (jnp.exp(x), None), lambda _, dy: (dy * 3.0,))
    return function
