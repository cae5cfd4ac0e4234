"""Plugins that take, break or hang what is not theirs: each ends in an error that blames it.

Every attack is a module that a host of its own loads beside our plugins, sorted before them or
after them. A program does what every installation can do, then what the attack wants; then the
plugins are listed.
"""

from __future__ import annotations

import pytest

from tests.contracts.plugin_attacks import ATTACKS
from tests.contracts.plugin_parts import ADD_KERNELS, OTHERS, RUN_FANCY

pytestmark = pytest.mark.needs("core", "autodiff", "backend-cpu")

# Most attacks do not depend on who comes first; those on what others own run in both orders.
ORDERED = [
    "kernel of core's op",
    "gradient of core's op",
    "official name",
    "device kind",
    "runtime target",
    "clash in a second table",
]


@pytest.mark.parametrize(
    ("kind", "name"),
    [*((kind, "aaa") for kind in ATTACKS), *((kind, "zzz") for kind in ORDERED)],
)
def test_attack_blames_the_intruder_and_all_else_works(kind, name, run_beside):
    attack = ATTACKS[kind]
    if kind == "runtime target":
        pytest.importorskip("headrace_mpi")
    printed, states = run_beside(OTHERS + attack.uses.replace("@", name), **{name: attack.code})
    assert states[name].state == attack.state, states[name]
    said = printed + states[name].reason
    assert "no error" not in printed
    assert [text for text in attack.says if text.replace("@", name) not in said] == [], said
    assert {s.state for s in states.values() if s.name != name} == {"loaded"}, states


CANCEL = (
    """
@op("Fancy", blocking=True, effects=("observes",))
def fancy(x: Floating) -> Spec:
    "Waits for ever."
    return x

@hookimpl
def headrace_register_names(registry): registry.add("fancy", f"{__name__}:fancy")

@KERNELS.blocking("Fancy")
def kernel(ctx, step, done, x):
    ADD
"""
    + ADD_KERNELS
)
CLOSE = """
import threading, time
v = hr.placeholder(hr.float32, [2])
y = hr.fancy(v)
session = hr.Session()
def step():
    try:
        session.run(y, {v: [1.0, 2.0]})
    except hr.errors.HeadraceError as error:
        print(type(error).__name__, error, *getattr(error, "__notes__", ()))
thread = threading.Thread(target=step, daemon=True)
thread.start()
time.sleep(0.3)
session.close()
thread.join(20)
print("over" if not thread.is_alive() else "hangs")
"""


@pytest.mark.parametrize(
    ("add", "says"),
    [
        (
            "step.cancellation.add(lambda reason: 1 / 0)",
            "a cancellation callback of the kernel of plugin 'aaa' at plugin_aaa:",
        ),
        # Nobody tells it, and it never answers.
        ("pass", "SessionClosedError"),
    ],
    ids=["callback raises", "no callback"],
)
def test_closing_does_not_hang_on_a_kernel_that_waits(add, says, run_beside):
    printed, states = run_beside(OTHERS + CLOSE, aaa=CANCEL.replace("ADD", add))
    assert says in printed
    assert printed.strip().endswith("over")
    assert states["aaa"].state == "loaded"


TWICE = "done(x + x); done(x + x)"
THREADS = "threading.Thread(target=lambda: done((x + x).astype(np.float64))).start()"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (TWICE, "answered twice for Fancy 'Fancy'"),
        (THREADS, "returned float64[2], and Fancy declares float32[2]"),
        ("done(x + x); raise OSError('after all')", "Fancy failed: OSError: after all"),
    ],
    ids=["twice", "wrong dtype", "answers and raises"],
)
def test_waiting_kernel_answers_once_and_rightly(body, says, run_beside):
    program = f"{OTHERS}{RUN_FANCY}\nattempt(lambda: hr.Session().run(hr.fancy(hr.constant(fed))))"
    printed, _ = run_beside(program, aaa=CANCEL.replace("ADD", body))
    assert says in printed
    assert "plugin 'aaa'" in printed
