"""Recording how stale the updates of asynchronous training are.

Variables have a version, which each update raises by one. A step notes the version when it begins
to read, and again when it has applied its update: the updates in between are those of others,
which its gradients did not know of.

References:
    J. Dean et al., Large scale distributed deep networks, NIPS 2012, section 4.1.
"""

from __future__ import annotations

from typing import Any, final

import headrace as hr
from headrace.errors import AttributeValueError, shown
from headrace_train.staleness.summary import StalenessSummary


@final
class StalenessRecorder:
    """Counts updates of shared variables by their staleness, over all workers.

    Make it before the model, on the task that holds the variables, and let it record what updates
    them. All workers that build the same program count into the same variables.

    Example:
        ::

            with hr.device("/job:ps/task:0"):
                staleness = hr.train.StalenessRecorder()
            ...
            train_step = staleness.record(optimizer.minimize(loss))
            ...
            print(staleness.summary(session))

    Attributes:
        version: A variable: how many updates there were.
        counts: A variable, [limit + 1]: how many updates had the staleness of each index, the last
            one or more.
        limit: The largest staleness that is counted by itself.
        staleness: int64 tensor, after ``record``: that of this step's update.
    """

    def __init__(self, limit: int = 1000, name: str = "staleness") -> None:
        """Make the variables, and read the version.

        Args:
            limit: The largest staleness that is counted by itself; above it all count as one.
            name: The scope of the variables; two recorders of one program need two.

        Raises:
            AttributeValueError: if the limit is less than 1.
        """
        if type(limit) is not int or limit < 1:
            raise AttributeValueError(f"limit must be a whole number from 1 on, got {shown(limit)}")
        self.limit = limit
        self._name = name
        self.staleness: hr.Tensor | None = None
        with hr.variable_scope(name):
            zeros = hr.zeros_initializer()
            facts: dict[str, Any] = {"initializer": zeros, "trainable": False}
            self.version = hr.get_variable("version", [], hr.int64, **facts)
            self.counts = hr.get_variable("counts", [limit + 1], hr.int64, **facts)
            self._begin = hr.identity(self.version.read_value(), name="read")

    def record(self, train_op: Any) -> hr.Operation:
        """Return an operation that runs a step's update and counts it.

        Args:
            train_op: What applies the update, such as ``Optimizer.minimize`` returns.

        Raises:
            AttributeValueError: if the recorder records another update already.
        """
        if self.staleness is not None:
            raise AttributeValueError(
                f"the recorder {self._name!r} records an update already: make one for each"
            )
        with hr.name_scope(f"{self._name}/record"):
            with hr.control_dependencies([train_op]), hr.colocate_with(self.version.handle):
                # One number for each update: the sum is made and read at once.
                after = hr.assign_add(self.version, 1, use_locking=True)
                own = hr.maximum(after - 1 - self._begin, 0)
            self.staleness = own
            with hr.colocate_with(self.counts.handle):
                place = hr.minimum(own, self.limit)
                counted = hr.scatter_add(self.counts, place, hr.constant(1, hr.int64))
            return hr.group(counted, name="update")

    def summary(self, session: hr.Session) -> StalenessSummary:
        """Return what was counted so far, of all workers.

        Args:
            session: A session in which the variables have values.
        """
        return StalenessSummary.of(session.run(self.counts))
