"""A line search for the strong Wolfe conditions, as one loop of the graph.

Each iteration evaluates the loss once. At first it looks for an interval that holds a good point,
then it makes the interval smaller; which of both is a loop variable.

References:
    J. Nocedal and S. Wright, Numerical Optimization, 2nd edition, Algorithms 3.5 and 3.6, and
    equation (3.59) for the cubic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import headrace as hr
from headrace import Tensor

Evaluate = Callable[[Tensor], tuple[Tensor, Tensor]]

# While there is no interval, the next step is so many times the last one further, within limits.
_LEAST_GROWTH, _MOST_GROWTH = 1.1, 4.0
# A trial keeps this share of the interval from its ends.
_MARGIN = 0.1
_SEEKING, _NARROWING, _DONE = 0, 1, 2


class Trial(NamedTuple):
    """A point along the direction of search.

    Attributes:
        length: [], how far along.
        loss: [], there.
        slope: [], the derivative of the loss with respect to ``length``.
        gradient: [n], there.
    """

    length: Tensor
    loss: Tensor
    slope: Tensor
    gradient: Tensor


class Wolfe(NamedTuple):
    """What is asked of a point.

    Attributes:
        decrease: The share of the first slope by which the loss falls at least, c1.
        curvature: The share of the first slope to which the slope falls at least, c2.
        most: How many points may be evaluated.
    """

    decrease: float
    curvature: float
    most: int


class _State(NamedTuple):
    evaluated: Tensor
    phase: Tensor
    length: Tensor
    low: Trial
    high: Trial


def search(
    evaluate: Evaluate, point: Tensor, along: Tensor, start: Trial, first: Tensor, wolfe: Wolfe
) -> tuple[Trial, Tensor]:
    """Return a point along a direction at which the loss is lower, and how many were evaluated.

    A loss that is not finite counts as one that is too high. Where no point meets the conditions
    within the limit, it is the best that was found: ``start`` itself, of length 0, where no point
    was lower.

    Args:
        evaluate: From a point to the loss and gradient there.
        point: [n], where the search starts.
        along: [n], a direction in which the loss falls.
        start: What is known of ``point``.
        first: [], the length to try first.
        wolfe: What is asked.
    """

    def going(state: _State) -> Tensor:
        more: Tensor = hr.logical_and(state.phase < _DONE, state.evaluated < wolfe.most)
        return more

    def once(state: _State) -> _State:
        loss, gradient = evaluate(point + state.length * along)
        slope = hr.reduce_sum(gradient * along)
        finite = hr.logical_and(hr.is_finite(loss), hr.is_finite(slope))
        infinite = hr.constant(float("inf"), loss.dtype)
        tried = Trial(
            state.length,
            hr.where(finite, loss, infinite),
            hr.where(finite, slope, hr.zeros_like(slope)),
            hr.where(finite, gradient, hr.zeros_like(gradient)),
        )
        return _next(state, tried, start, wolfe)

    def flat(state: _State) -> list[Tensor]:
        return [state.evaluated, state.phase, state.length, *state.low, *state.high]

    def packed(values: Sequence[Any]) -> _State:
        evaluated, phase, length = values[:3]
        return _State(evaluated, phase, length, Trial(*values[3:7]), Trial(*values[7:]))

    begin = _State(hr.constant(0), hr.constant(_SEEKING), first, start, start)
    found = hr.while_loop(
        lambda *values: going(packed(values)),
        lambda *values: flat(once(packed(values))),
        flat(begin),
        back_prop=False,
        name="line_search",
    )
    end = packed(found)
    return end.low, end.evaluated


def _next(state: _State, tried: Trial, start: Trial, wolfe: Wolfe) -> _State:
    """Return the state after a trial.

    ``low`` is the lowest point so far that has sufficient decrease. In the end it is the result.
    """
    seeking = hr.equal(state.phase, _SEEKING)
    bound = start.loss + wolfe.decrease * tried.length * start.slope
    too_high = hr.logical_or(
        tried.loss > bound,
        hr.logical_and(
            tried.loss >= state.low.loss,
            hr.logical_or(hr.logical_not(seeking), state.evaluated > 0),
        ),
    )
    is_good = hr.logical_and(
        hr.logical_not(too_high), hr.abs(tried.slope) <= -wolfe.curvature * start.slope
    )
    # The minimum lies behind: between here and the last point, or the other end.
    ahead = hr.where(seeking, tried.length - state.low.length, state.high.length - state.low.length)
    turned = hr.logical_and(hr.logical_not(too_high), tried.slope * ahead >= 0)
    high = _where(too_high, tried, _where(turned, state.low, state.high))
    low = _where(too_high, state.low, tried)
    narrows = hr.logical_or(hr.logical_not(seeking), hr.logical_or(too_high, turned))
    length = hr.where(narrows, _inside(low, high), _beyond(state.low, tried))
    moves = hr.logical_and(hr.not_equal(length, low.length), hr.not_equal(length, high.length))
    done = hr.logical_or(is_good, hr.logical_not(moves))
    phase = hr.where(
        done, hr.constant(_DONE), hr.where(narrows, hr.constant(_NARROWING), hr.constant(_SEEKING))
    )
    return _State(state.evaluated + 1, phase, length, low, high)


def _where(chosen: Tensor, a: Trial, b: Trial) -> Trial:
    return Trial(*(hr.where(chosen, x, y) for x, y in zip(a, b, strict=True)))


def _cubic(a: Trial, b: Trial) -> Tensor:
    """Return where the cubic through two points with their slopes is lowest; may be no number."""
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.length - b.length)
    d2 = hr.sign(b.length - a.length) * hr.sqrt(d1 * d1 - a.slope * b.slope)
    lowest: Tensor = b.length - (b.length - a.length) * (b.slope + d2 - d1) / (
        b.slope - a.slope + 2 * d2
    )
    return lowest


def _inside(low: Trial, high: Trial) -> Tensor:
    """Return the next trial in an interval."""
    left = hr.minimum(low.length, high.length)
    right = hr.maximum(low.length, high.length)
    width = right - left
    cubic = _cubic(low, high)
    clipped = hr.minimum(hr.maximum(cubic, left + _MARGIN * width), right - _MARGIN * width)
    chosen: Tensor = hr.where(hr.is_finite(cubic), clipped, left + width / 2)
    return chosen


def _beyond(last: Trial, tried: Trial) -> Tensor:
    """Return the next trial further along, where the loss still falls."""
    stride = tried.length - last.length
    least, most = tried.length + _LEAST_GROWTH * stride, tried.length + _MOST_GROWTH * stride
    cubic = _cubic(last, tried)
    ahead = hr.logical_and(hr.is_finite(cubic), cubic > tried.length)
    chosen: Tensor = hr.where(ahead, hr.minimum(hr.maximum(cubic, least), most), most)
    return chosen
