"""The position of an iterator, as savers see it."""

from __future__ import annotations

import headrace as hr
from headrace.extend.state import Saveable
from headrace_data.iterators.iterator import Iterator
from headrace_data.ops.pipelines import iterator_is_initialized, iterator_state, restore_iterator


def make_saveable_from_iterator(iterator: Iterator) -> Saveable:
    """Return what a ``Saver`` saves of an iterator: the position, with all that is on its way.

    Add it to the collection ``GraphKeys.SAVEABLE_OBJECTS`` before the ``Saver`` is made, or pass it
    in ``var_list``. A position is restored before or after the iterator is initialized: where it
    has no data set yet, it goes there when it gets one. What a data set was made of, such as the
    values of placeholders, is not saved.

    Args:
        iterator: The iterator.
    """
    resource = iterator.resource
    name = resource.op.name.removesuffix("/handle")
    with hr.control_dependencies(None), hr.name_scope(f"{name}/"):
        return Saveable(
            f"{name}-position",
            iterator_state(resource, name="state"),
            iterator_is_initialized(resource, name="is_initialized"),
            lambda value: restore_iterator(resource, value, name="restore"),
        )
