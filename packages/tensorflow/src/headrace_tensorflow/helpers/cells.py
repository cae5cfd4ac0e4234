"""``ops.rnn_cell_impl``: the state with which cells of other libraries begin."""

from __future__ import annotations

from typing import Any

import headrace as hr


def _zero_state_tensors(state_size: Any, batch_size: Any, dtype: Any) -> Any:
    """Return zeros for a state.

    Args:
        state_size: The sizes or shapes of the parts of the state for one example, in any structure.
        batch_size: The number of examples, an int or an integer tensor.
        dtype: The dtype of all parts.

    Returns:
        Tensors [batch_size, ...] in the structure of ``state_size``.
    """

    def zeros(size: Any) -> hr.Tensor:
        return hr.zeros([batch_size, *hr.TensorShape(size).as_list()], dtype)

    return hr.nest.map_structure(zeros, state_size)
