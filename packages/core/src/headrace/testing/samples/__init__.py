"""The samples of core's ops, by family, and the ops that have none, each with the reason."""

from headrace.testing.sample import Row
from headrace.testing.samples import (
    array,
    constant,
    control,
    conv,
    elementwise,
    indexing,
    linalg,
    nn,
    random,
    reduce,
)

SAMPLES: dict[str, list[Row]] = {
    "elementwise": elementwise.SAMPLES,
    "reduce": reduce.SAMPLES,
    "array": array.SAMPLES,
    "constant": constant.SAMPLES,
    "indexing": indexing.SAMPLES,
    "linalg": linalg.SAMPLES,
    "nn": nn.SAMPLES,
    "conv": conv.SAMPLES,
    "random": random.SAMPLES,
    "control": control.SAMPLES,
}

_STATE = "its result depends on state; each backend's tests cover it"
_QUEUE = "it waits for other steps; each backend's tests cover it"
_MOVED = "every sample passes through it"

WITHOUT_SAMPLES: dict[str, str] = {
    "NoOp": "it has no outputs",
    "Placeholder": "every fed sample has one",
    **dict.fromkeys(("Feed", "Fetch"), _MOVED),
    **dict.fromkeys(("Send", "Recv"), "steps on two devices pass through it"),
    **dict.fromkeys(
        (
            "VarHandle",
            "ReadVariable",
            "VariableInitialized",
            "AssignVariable",
            "AssignAddVariable",
            "AssignSubVariable",
            "ScatterAddVariable",
            "ScatterSubVariable",
            "ScatterUpdateVariable",
        ),
        _STATE,
    ),
    **dict.fromkeys(
        (
            "FIFOQueue",
            "QueueEnqueue",
            "QueueEnqueueMany",
            "QueueDequeue",
            "QueueDequeueMany",
            "QueueSize",
            "QueueIsClosed",
            "QueueClose",
        ),
        _QUEUE,
    ),
}
