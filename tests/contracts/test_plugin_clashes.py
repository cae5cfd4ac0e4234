"""What two plugins want, or what is not theirs: the first has it, or who asks to replace it."""

from __future__ import annotations

import pytest

from tests.contracts.plugin_attacks import ATTACKS
from tests.contracts.plugin_parts import ADD_GRADIENTS, ADD_KERNELS, OTHERS, fancy_kernel

pytestmark = pytest.mark.needs("core", "autodiff", "backend-cpu")


def test_op_declared_by_two_plugins(run_beside):
    code = fancy_kernel("    return x + x")
    program = f"{OTHERS}\nprint(hr.Session().run(hr.fancy(hr.constant([1.0, 2.0]))).tolist())"
    printed, states = run_beside(program, aaa=code, bbb=code)
    assert printed.strip() == "[2.0, 4.0]"
    assert states["aaa"].state == "loaded"
    assert states["bbb"].state == "broken"
    assert "op 'Fancy' is declared twice: at plugin_aaa" in states["bbb"].reason
    assert "and at plugin_bbb" in states["bbb"].reason


OVERRIDE = (
    ADD_KERNELS
    + ADD_GRADIENTS
    + "@KERNELS.plain('Sin', override='it is a test')\ndef sin(xp, x): return x * 0 + 7\n"
    + "@GRADIENTS.add('Sin', override='another test')\ndef rule(op, gy): return [gy * 3.0]\n"
)
SHOWN = """
import headrace as hr
from headrace.cli.main import main

x = hr.placeholder(hr.float32, [2])
y = hr.sin(x)
(g,) = hr.gradients(y, [x])
for executor in ("plain", "plan"):
    session = hr.Session(config=hr.Config(executor=executor))
    assert [v.tolist() for v in session.run([y + 1.0, g], {x: [0.5, 1.0]})] == [[8, 8], [3, 3]]
print(session.explain(y, {x: [0.5, 1.0]}))
for words in (["plugins"], ["doctor"], ["ops", "Sin"]):
    print("==", *words)
    main(words)
"""


def test_override_replaces_and_is_shown(run_beside):
    printed, states = run_beside(SHOWN, aaa=OVERRIDE)
    result, *shown = printed.split("==")
    assert states["aaa"].state == "loaded"
    kernel = "the kernel for Sin on cpu, of plugin 'cpu', is replaced by plugin 'aaa' at"
    assert kernel in result
    for text in shown:
        assert kernel in " ".join(text.split())
        assert "it is a test" in text
        assert "the gradient rule of Sin, of plugin 'autodiff', is replaced by" in text


def test_a_clash_in_rules_shows_before_a_kernel_is_used(run_beside):
    """Rules are collected when gradients are asked for; a session must not wait for that."""
    program = """
import headrace as hr
from headrace.plugins.host import host
assert host().kernels.devices_of("Fancy") == []
assert host().kernels.covers("Sin", "cpu", hr.float32)
assert "gradients" not in vars(host())
"""
    _, states = run_beside(program, aaa=ATTACKS["clash in a second table"].code)
    assert states["aaa"].state == "broken"
    assert "the gradient rule of Sin at plugin_aaa:" in states["aaa"].reason
    assert "of plugin 'autodiff' at headrace_autodiff.rules" in states["aaa"].reason


def test_two_requests_for_one_thing(run_beside):
    code = ADD_KERNELS + "@KERNELS.plain('Sin', override='WHY')\ndef sin(xp, x): return x * 0 + 7\n"
    program = "assert hr.Session().run(hr.sin([0.5])).tolist() == [7.0]"
    _, states = run_beside(
        "import headrace as hr\n" + program,
        aaa=code.replace("WHY", "one"),
        bbb=code.replace("WHY", "other"),
    )
    assert states["aaa"].state == "loaded"
    assert states["bbb"].state == "broken"
    assert "of plugin 'aaa' at plugin_aaa" in states["bbb"].reason
    assert "which asks for the same" in states["bbb"].reason
