"""What cuDNN is asked for, beside a frontend that only writes down what is called."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import numpy as np
import pytest

from headrace.errors import ExecutionError
from headrace_cuda.convolution import cudnn
from headrace_cuda.convolution.library import ConvolutionPlaces, ConvolutionShape, Direction


class NotSupportedError(Exception):
    pass


class Tensor:
    def __init__(self, calls, name):
        self.calls, self.name = calls, name

    def __getattr__(self, called):
        def call(*args):
            self.calls.append((f"{self.name} tensor", called, *args))
            return [8, 10, 4, 9] if called == "get_dim" else self

        return call


class Frontend:
    """A frontend whose graphs write down every call.

    Args:
        failing: What a call raises, by its name.
        workspaces: Bytes that each plan needs, None for one that cannot be built.

    Attributes:
        index: Of the plan that is built.
    """

    def __init__(self, failing=None, workspaces=(1000,)):
        self.calls, self.failing, self.workspaces = [], failing or {}, workspaces
        self.index = 0

    def __getattr__(self, name):
        return NotSupportedError if name == "cudnnGraphNotSupportedError" else Names(name)

    def create_handle(self):
        if "create_handle" in self.failing:
            raise self.failing["create_handle"]
        return "handle"

    def set_stream(self, handle, stream):
        self.calls.append(("set_stream", stream))

    def pygraph(self, **options):
        self.calls.append(("pygraph", options["handle"]))
        return FrontendGraph(self)


class Names:
    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        return f"{self._name}.{name}"


class FrontendGraph:
    def __init__(self, frontend):
        self._frontend = frontend

    def __getattr__(self, name):
        def call(*args, **options):
            self._frontend.calls.append((name, args, options))
            if name in self._frontend.failing:
                raise self._frontend.failing[name]
            if name == "get_workspace_size":
                return self._frontend.workspaces[self._frontend.index]
            if name == "get_execution_plan_count":
                return len(self._frontend.workspaces)
            if name == "build_plan_at_index":
                (self._frontend.index,) = args
                if self._frontend.workspaces[args[0]] is None:
                    raise NotSupportedError("no such plan")
            return Tensor(self._frontend.calls, options.get("name", name))

        return call


class Gpu:
    """Has memory, and a time for each of what is measured.

    Args:
        times: Seconds, or what is raised.
        room: Bytes of memory.
    """

    stream = 77

    def __init__(self, times=(), room=1 << 40):
        self.times, self.room = list(times), room

    def allocate(self, size):
        if size > self.room:
            raise ExecutionError("out of memory")
        return size

    def address(self, array):
        return array

    def measure(self, work):
        work()
        time = self.times.pop(0) if self.times else 1.0
        if isinstance(time, Exception):
            raise time
        return time


FORWARD = ConvolutionShape(
    direction=Direction.FORWARD,
    images=8, image=(7, 9), channels=6, window=(3, 2), out=(4, 9), filters=10,
    strides=(2, 1), dilations=(1, 1), before=(1, 0), after=(1, 1), groups=2, precision="tf32",
)  # fmt: skip
HIGHEST = replace(FORWARD, precision="highest")


class Memory(Gpu):
    """Has memory that can be looked at."""

    def allocate(self, size):
        return np.full(size + 64, 0xA5, np.uint8)[:size]

    def address(self, array):
        return array.ctypes.data

    def view(self, place, shape, dtype, owner):
        return owner.view(dtype).reshape(shape)

    def download(self, array):
        return np.array(array)


class Rounding(Frontend):
    """A frontend whose plans multiply what the first elements of operands are.

    Args:
        rounds: Whether each plan rounds its operands to 11 significant bits first.
    """

    def __init__(self, rounds):
        super().__init__(workspaces=[100 + i for i in range(len(rounds))])
        self.rounds = rounds

    def pygraph(self, **options):
        graph = FrontendGraph(self)
        graph.execute = self.execute
        return graph

    def execute(self, given, scratch, handle):
        assert handle == "handle"
        # As large as ``get_dim`` says.
        kind = ctypes.c_float * (8 * 10 * 4 * 9)
        at = {tensor.name: kind.from_address(place) for tensor, place in given.items()}
        one, other = (at[name][0] for name in ("activations", "filter"))
        if self.rounds[self.index]:
            one, other = (round(number * 2**10) / 2**10 for number in (one, other))
        at["conv_fprop"][:] = [0.0] * 4 + [one * other] * (len(at["conv_fprop"]) - 4)


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize(
    ("rounds", "chosen"),
    [([False], 0), ([True, False], 1), ([True, True, False, True], 2), ([True, True], None)],
    ids=str,
)
def test_plans_that_round_their_operands_are_not_taken_for_the_highest_precision(
    rounds, chosen, deterministic
):
    frontend = Rounding(rounds)
    plan = cudnn.Cudnn(Memory(), frontend).plan(replace(HIGHEST, deterministic=deterministic))
    assert (plan is None) == (chosen is None)
    assert plan is None or plan.scratch == 100 + chosen
    # Fewer bits are asked for: the first will do.
    plan = cudnn.Cudnn(Memory(), Rounding(rounds)).plan(FORWARD)
    assert plan.scratch == 100


def called(frontend, name):
    return [call[1:] for call in frontend.calls if call[0] == name]


def test_cudnn_gets_channels_last_in_its_own_order_of_axes():
    frontend = Frontend()
    plan = cudnn.Cudnn(Gpu(), frontend).plan(FORWARD)
    assert (plan.scratch, plan.name) == (1000, "cuDNN")
    tensors = {o["name"]: (o["dim"], o["stride"]) for _, o in called(frontend, "tensor")}
    assert tensors == {
        "activations": ([8, 6, 7, 9], [378, 1, 54, 6]),
        "filter": ([10, 3, 3, 2], [18, 1, 6, 3]),
    }
    ((_, options),) = called(frontend, "conv_fprop")
    assert options["pre_padding"] == [1, 0]
    assert options["post_padding"] == [1, 1]
    assert options["stride"] == [2, 1]
    assert options["dilation"] == [1, 1]
    assert ("conv_fprop tensor", "set_dim", [8, 10, 4, 9]) in frontend.calls
    assert ("conv_fprop tensor", "set_stride", [360, 1, 90, 10]) in frontend.calls


INEXACT = {"TENSOR_CORE", "DOWN_CONVERT_INPUTS"}


@pytest.mark.parametrize(
    ("precision", "deterministic", "refused"),
    [
        ("highest", False, INEXACT),
        ("highest", True, {*INEXACT, "NONDETERMINISTIC"}),
        ("tf32", True, {"NONDETERMINISTIC"}),
        ("tf32", False, set()),
    ],
)
def test_engines_that_are_refused(precision, deterministic, refused):
    frontend = Rounding([False])
    shape = replace(FORWARD, precision=precision, deterministic=deterministic)
    assert cudnn.Cudnn(Memory(), frontend).plan(shape) is not None
    notes = [note for (given,), _ in called(frontend, "deselect_numeric_notes") for note in given]
    assert {note.removeprefix("numerical_note.") for note in notes} == refused
    assert called(frontend, "deselect_workspace_greater_than") == [((cudnn.MOST_SCRATCH,), {})]


def test_equal_convolutions_share_what_is_built_and_run_on_the_thread_s_stream():
    frontend = Frontend()
    library = cudnn.Cudnn(Gpu(), frontend)
    shape = replace(FORWARD, deterministic=True)
    first, second = library.plan(shape), library.plan(shape)
    assert first is second
    assert len(called(frontend, "build_plans")) == 1
    first.start(ConvolutionPlaces(1, 2, 3), 4)
    assert called(frontend, "set_stream") == [(77,)]
    (((given, scratch), options),) = called(frontend, "execute")
    assert {tensor.name: place for tensor, place in given.items()} == {
        "activations": 1, "filter": 2, "conv_fprop": 3,
    }  # fmt: skip
    assert (scratch, options) == (4, {"handle": "handle"})


@pytest.mark.parametrize(
    "frontend",
    [
        Frontend({"check_support": NotSupportedError("no")}),
        Frontend({"build_operation_graph": NotSupportedError("no")}),
        Frontend(workspaces=[cudnn.MOST_SCRATCH + 1]),
    ],
    ids=["support", "graph", "workspace"],
)
def test_what_cudnn_does_not_support_stays_with_others(frontend):
    assert cudnn.Cudnn(Gpu(), frontend).plan(FORWARD) is None


TOO_MUCH = cudnn.MOST_SCRATCH + 1


@pytest.mark.parametrize(
    ("workspaces", "times", "chosen"),
    [
        ([10, 20, 30], [3.0, 1.0, 2.0], 1),
        ([10, 20], [1.0, 1.0], 0),
        # What cannot be built, needs too much, or fails when it runs, is left out.
        ([None, TOO_MUCH, 30, 40], [2.0, 1.0], 3),
        ([10, 20], [RuntimeError("odd"), 5.0], 1),
        ([10, 20], [NotSupportedError("odd"), 5.0], 1),
        # No more than some are tried.
        ([10] * 20, [float(20 - i) for i in range(20)], 9),
    ],
    ids=str,
)
def test_the_quickest_of_the_first_plans_is_chosen(workspaces, times, chosen):
    frontend = Frontend(workspaces=workspaces)
    plan = cudnn.Cudnn(Gpu(times), frontend).plan(FORWARD)
    assert frontend.index == chosen
    assert plan.scratch == workspaces[chosen]


@pytest.mark.parametrize("times", [[RuntimeError("odd")] * 2])
def test_where_no_plan_works_it_stays_with_others(times):
    assert cudnn.Cudnn(Gpu(times), Frontend(workspaces=[10, 20])).plan(FORWARD) is None


def test_without_room_the_first_plan_is_taken():
    frontend = Frontend(workspaces=[10, 20])
    assert cudnn.Cudnn(Gpu([2.0, 1.0], room=100), frontend).plan(FORWARD).scratch == 10
    # Room for the operands, but not for the scratch memory of the first.
    frontend = Frontend(workspaces=[1 << 29, 20])
    assert cudnn.Cudnn(Gpu(room=1 << 20), frontend).plan(FORWARD).scratch == 20


def test_nothing_is_timed_where_equal_runs_must_give_equal_bits():
    frontend = Frontend(workspaces=[10, 20])
    plan = cudnn.Cudnn(Gpu([2.0, 1.0]), frontend).plan(replace(FORWARD, deterministic=True))
    assert plan.scratch == 10
    assert not called(frontend, "execute")


def test_followers_are_only_asked_for_where_they_are_fused():
    shape = replace(FORWARD, bias=True, relu=True)
    assert cudnn.Cudnn(Gpu(), Frontend()).plan(shape) is None
    frontend = Frontend()
    assert cudnn.Cudnn(Gpu(), frontend, fuses=True).plan(shape) is not None
    assert [name for name in ("bias", "relu") if called(frontend, name)] == ["bias", "relu"]
    assert ("relu tensor", "set_dim", [8, 10, 4, 9]) in frontend.calls


def test_failures_say_for_what():
    with pytest.raises(ExecutionError, match="cuDNN does not start: no device"):
        cudnn.Cudnn(Gpu(), Frontend({"create_handle": RuntimeError("no device")}))
    with pytest.raises(
        ExecutionError,
        match=r"cuDNN fails: odd\n  a convolution of \[8, 7, 9, 6\] with \[3, 2, 3, 10\], forward",
    ):
        cudnn.Cudnn(Gpu(), Frontend({"validate": ValueError("odd")})).plan(FORWARD)
    frontend = Frontend({"execute": RuntimeError("odd")})
    plan = cudnn.Cudnn(Gpu(), frontend).plan(replace(FORWARD, deterministic=True))
    with pytest.raises(ExecutionError, match="cuDNN fails: odd"):
        plan.start(ConvolutionPlaces(1, 2, 3), 4)


def test_cudnn_s_version_is_told(monkeypatch):
    frontend = Frontend()
    frontend.backend_version = lambda: 91902
    monkeypatch.setattr(cudnn, "_frontend", lambda: frontend)
    assert cudnn.cudnn_version() == "9.19.2"
    assert isinstance(cudnn.open_cudnn(Gpu()), cudnn.Cudnn)


def test_without_cudnn_there_is_no_library(monkeypatch):
    monkeypatch.setattr(cudnn, "_frontend", lambda: None)
    assert cudnn.open_cudnn(Gpu()) is None
    assert cudnn.cudnn_version() is None
