"""Tracebacks of mistakes show the program's frames; the library's on request."""

from __future__ import annotations

import sys
import textwrap
import types
from typing import Any

import pytest

import headrace as hr
from headrace import tracebacks
from headrace.errors import HeadraceError, InternalError
from tests.children import run_program

pytestmark = pytest.mark.needs("backend-cpu")

PROGRAMS = {
    "building": """
        def model():
            x = hr.placeholder(hr.float32, [2, 3])
            return hr.matmul(x, x)
        model()
    """,
    "running": """
        x = hr.placeholder(hr.float32, [None])
        y = hr.placeholder(hr.float32, [None])
        with hr.Session() as session:
            session.run(x + y, {x: [1.0, 2.0], y: [1.0, 2.0, 3.0]})
    """,
    "feeding": """
        x = hr.placeholder(hr.float32, [2])
        with hr.Session() as session:
            session.run(x, {x: [1.0, 2.0, 3.0]})
    """,
    "in a branch": """
        x = hr.placeholder(hr.float32, [2, 3])
        hr.cond(x[0, 0] > 0.0, lambda: hr.matmul(x, x), lambda: x)
    """,
    "reading what was never written": """
        v = hr.Variable([1.0])
        with hr.Session() as session:
            session.run(v)
    """,
    "by name": """
        hr.get_default_graph().get_tensor_by_name("nothing:0")
    """,
}
HINT = "headrace: frames of the library are left out; HEADRACE_TRACEBACK=full shows them"


def stderr_of(program: str, **environment: str) -> list[str]:
    source = "import headrace as hr\n" + textwrap.dedent(program)
    done = run_program(source, env={"HEADRACE_TRACEBACK": "", **environment}, check=False)
    assert done.returncode == 1
    return done.stderr.splitlines()


@pytest.mark.parametrize(
    "name",
    [
        *list(PROGRAMS)[:2],
        # A process each.
        *(pytest.param(name, marks=pytest.mark.slow) for name in list(PROGRAMS)[2:]),
    ],
)
def test_uncaught_mistakes_show_the_programs_frames_alone(name: str) -> None:
    lines = stderr_of(PROGRAMS[name])
    files = [line for line in lines if line.startswith("  File ")]
    assert files
    assert all('"<string>"' in line for line in files)
    assert lines[-1] == HINT
    assert len(lines) <= 12


MORE = {
    **PROGRAMS,
    "in a function": """
        @hr.function
        def model(x):
            return hr.matmul(x, x)
        model(hr.zeros([2, 3]))
    """,
    "in a loop": """
        hr.while_loop(lambda i: i < 3, lambda i: hr.concat([i, 1.0], 0), [0])
    """,
    "converting": """
        hr.constant([[1.0], [2.0, 3.0]])
    """,
    "fetching": """
        with hr.Session() as session:
            session.run("nothing:0")
    """,
    "configuring": """
        hr.Config(executor="fast")
    """,
    "computing": """
        x = hr.placeholder(hr.float32, [2, 2])
        with hr.Session() as session:
            session.run(hr.matrix_inverse(x), {x: [[0.0, 0.0], [0.0, 0.0]]})
    """,
    "in a generator": """
        def layers():
            yield hr.matmul(hr.zeros([2, 3]), hr.zeros([2, 3]))
        list(layers())
    """,
    "while another error is handled": """
        try:
            hr.constant("a") + 1.0
        except hr.errors.HeadraceError:
            hr.matmul(hr.zeros([2, 3]), hr.zeros([2, 3]))
    """,
    "from another error": """
        try:
            {}["key"]
        except KeyError as error:
            try:
                hr.reshape(hr.zeros([3]), [2])
            except hr.errors.HeadraceError as refused:
                raise refused from error
    """,
}


def caught_in(program: str) -> HeadraceError:
    with hr.Graph().as_default():
        try:
            exec(compile(textwrap.dedent(program), "<program>", "exec"), {"hr": hr})
        except HeadraceError as error:
            return error
    raise AssertionError


def files(error: BaseException) -> set[str]:
    """Return the files that the frames of an error, and of what led to it, are of."""
    chain = [error]
    while (last := chain[-1].__cause__ or chain[-1].__context__) is not None:
        if last is chain[-1].__context__ and chain[-1].__suppress_context__:
            break
        chain.append(last)
    steps = [step for link in chain for step in tracebacks._frames(link.__traceback__)]
    return {step.tb_frame.f_code.co_filename for step in steps}


@pytest.mark.needs("autodiff")
@pytest.mark.parametrize("name", MORE)
def test_mistakes_of_every_kind_are_folded(name: str) -> None:
    error = caught_in(MORE[name])
    assert not files(error) <= {"<program>", __file__}
    assert tracebacks.fold(error)
    assert files(error) <= {"<program>", __file__}


@pytest.mark.parametrize("name", MORE)
def test_mistakes_of_every_kind_are_whole_on_request(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_TRACEBACK", "full")
    error = caught_in(MORE[name])
    before = files(error)
    assert not tracebacks.fold(error)
    assert files(error) == before


def test_the_full_traceback_is_there_on_request() -> None:
    lines = stderr_of(PROGRAMS["building"], HEADRACE_TRACEBACK="full")
    assert HINT not in lines
    assert any("headrace" in line for line in lines if line.startswith("  File "))


def test_errors_that_are_not_ours_stay_as_they_are() -> None:
    lines = stderr_of("hr.constant(1.0)\n{}['key']")
    assert lines[-1] == "KeyError: 'key'"


def test_threads_fold_frames_too() -> None:
    program = """
        import sys, threading
        def work():
            hr.matmul(hr.zeros([2, 3]), hr.zeros([2, 3]))
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        sys.exit(1)
    """
    lines = stderr_of(program)
    files = [line for line in lines if line.startswith("  File ")]
    assert files
    assert all('"<string>"' in line for line in files)


def test_a_hook_of_the_program_gets_the_folded_error() -> None:
    program = """
        import sys, traceback
        def mine(kind, error, trace):
            print("mine", len(traceback.extract_tb(trace)), file=sys.stderr)
        sys.excepthook = mine
        import importlib
        from headrace import tracebacks
        tracebacks.install()
        hr.matmul(hr.zeros([2, 3]), hr.zeros([2, 3]))
    """
    assert stderr_of(program) == ["mine 1"]


def mistake() -> BaseException:
    try:
        hr.matmul(hr.zeros([2, 3]), hr.zeros([2, 3]))
    except HeadraceError as error:
        return error
    raise AssertionError


def names(error: BaseException) -> list[str]:
    return [step.tb_frame.f_code.co_name for step in tracebacks._frames(error.__traceback__)]


def test_a_caught_error_has_all_of_its_frames() -> None:
    error = mistake()
    assert len(names(error)) > 1
    assert tracebacks.fold(error)
    assert names(error) == ["mistake"]
    assert not tracebacks.fold(error)


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, InternalError])
def test_faults_keep_their_frames(kind: Any) -> None:
    error = kind("x").with_traceback(mistake().__traceback__)
    before = names(error)
    assert not tracebacks.fold(error)
    assert names(error) == before


@pytest.mark.parametrize("name", MORE)
def test_notebooks_show_folded_errors(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Shell:
        def set_custom_exc(self, kinds: Any, show: Any) -> None:
            self.kinds, self.show = kinds, show

        def showtraceback(self, shown: Any, tb_offset: Any = None) -> None:
            self.shown = shown

    shell = Shell()
    module = types.ModuleType("IPython")
    module.get_ipython = lambda: shell  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)
    tracebacks._fold_in_notebooks()
    assert shell.kinds == (HeadraceError,)
    error = caught_in(MORE[name])
    shell.show(shell, type(error), error, error.__traceback__)
    assert shell.shown[1] is error
    assert {s.tb_frame.f_code.co_filename for s in tracebacks._frames(shell.shown[2])} == {
        "<program>",
        __file__,
    }
