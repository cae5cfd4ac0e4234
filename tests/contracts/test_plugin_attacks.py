"""Plugins that take, break or hang what is not theirs: each ends in an error that blames it.

Every attack is a module that a host of its own loads beside our plugins, sorted before them or
after them. A program does what every installation can do, then what the attack wants; then the
plugins are listed.
"""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, entry_points
from typing import NamedTuple

import pytest

import headrace as hr
from headrace.extend import OPS
from headrace.extend.plugins import PluginState
from headrace.plugins import host as host_module
from headrace.plugins.reserved import OFFICIAL

pytestmark = pytest.mark.needs("core", "autodiff", "backend-cpu")

# What works whatever is installed beside it: kernels, gradients, names, devices, variables.
OTHERS = """
import numpy as np
import headrace as hr

x = hr.placeholder(hr.float32, [2], name="x")
y = hr.sin(x)
(g,) = hr.gradients(y, [x])
with hr.Session() as session:
    value, slope = session.run([y, g], {x: [0.5, 1.0]})
np.testing.assert_allclose(value, np.sin([0.5, 1.0]), rtol=1e-6)
np.testing.assert_allclose(slope, np.cos([0.5, 1.0]), rtol=1e-6)
assert hr.gradients.__module__ == "headrace_autodiff.reverse_mode", hr.gradients
assert hr.matmul.__module__.startswith("headrace."), hr.matmul
"""
HEAD = """
import threading
import numpy as np
from headrace.extend import *
from headrace.extend import hookimpl

KERNELS, GRADIENTS = KernelTable(), GradientTable()
"""
# Adds an op of the plugin's own: Fancy, of any number of inputs.
FANCY = """
@op("Fancy")
def fancy(x: Floating) -> Spec:
    "Twice x."
    return x

@hookimpl
def headrace_register_names(registry): registry.add("fancy", f"{__name__}:fancy")
"""
ODD_DEVICE = """
class Odd:
    name, xp = "/job:localhost/task:0/device:odd:0", None
    def __init__(self, says): self.says = says
    def limits(self, threads): return eval(self.says)
    def from_host(self, array): return array
    def to_host(self, array): return array
    def activate(self): return None
"""
ADD_KERNELS = """
@hookimpl
def headrace_register_kernels(registry): registry.add("cpu", KERNELS)
"""
ADD_GRADIENTS = """
@hookimpl
def headrace_register_gradients(registry): registry.add(GRADIENTS)
"""
RUN_FANCY = """
def attempt(run):
    try:
        run()
    except hr.errors.HeadraceError as error:
        print(type(error).__name__, error, *getattr(error, "__notes__", ()))
    else:
        print("no error")
fed = np.array([1.0, 2.0], np.float32)
"""


class Attack(NamedTuple):
    """A plugin's code, and what must come of it.

    Attributes:
        code: The module.
        says: What is said of it, by the list of plugins or by what ``uses`` prints; ``@`` stands
            for the plugin's name.
        uses: What a program does that uses the plugin.
        state: What the list calls it.
    """

    code: str
    says: tuple[str, ...]
    uses: str = ""
    state: str = "broken"


def device(arguments: str) -> str:
    return f"""
@hookimpl
def headrace_register_devices(registry): registry.add({arguments})
"""


def fancy_kernel(body: str, style: str = "plain", arguments: str = "xp, x") -> str:
    return f"""{FANCY}{ADD_KERNELS}
@KERNELS.{style}("Fancy")
def kernel({arguments}):
{body}
"""


def fancy_rule(body: str) -> str:
    return f"""{fancy_kernel("    return x + x")}{ADD_GRADIENTS}
@GRADIENTS.add("Fancy")
def rule(node, gy):
{body}
"""


def differentiated() -> str:
    return f"""{RUN_FANCY}
v = hr.placeholder(hr.float32, [2], name="v")
attempt(lambda: hr.gradients(hr.fancy(v), [v]))
"""


# The plan that a session makes of it, the compiled one and the plain one, for each kind of input.
RUN_ALL = f"""{RUN_FANCY}
for executor in ("plain", "plan"):
    graph = hr.Graph()
    with graph.as_default():
        v = hr.placeholder(hr.float32, [2], name="v")
        constant = hr.constant([1.0, 2.0])
        variable = hr.Variable([1.0, 2.0])
        made = [hr.fancy(t) for t in (v, constant, variable.value(), v * 2.0)]
        session = hr.Session(config=hr.Config(executor=executor))
        session.run(hr.global_variables_initializer())
        for y in made:
            attempt(lambda: session.run(y, {{v: fed}}))
        assert session.run(variable).tolist() == [1.0, 2.0]
        assert session.run(constant + 0.0).tolist() == [1.0, 2.0]
        assert fed.tolist() == [1.0, 2.0]
        session.close()
"""
IN_KERNEL = "the kernel of plugin '@' at"

ATTACKS = {
    "kernel of core's op": Attack(
        ADD_KERNELS + "@KERNELS.plain('Sin')\ndef sin(xp, x): return x",
        ("the kernel for Sin on cpu at", "would replace that of plugin 'cpu'", "fix plugin '@'"),
    ),
    "specialized kernel of core's op": Attack(
        ADD_KERNELS + "@KERNELS.specialized('Sin', priority=99)\ndef sin(node): return lambda x: x",
        ("the kernel for Sin on cpu at", "fix plugin '@'"),
    ),
    "gradient of core's op": Attack(
        ADD_GRADIENTS + "@GRADIENTS.add('Sin')\ndef sin(op, gy): return [gy * 0.0]",
        ("the gradient rule of Sin at", "would replace that of plugin 'autodiff'"),
    ),
    "gradient of an op that has none": Attack(
        ADD_GRADIENTS + "@GRADIENTS.add('ArgMax')\ndef best(op, gy): return [gy]",
        ("the gradient rule of ArgMax at", "which says: no gradient"),
    ),
    "official name": Attack(
        "@hookimpl\ndef headrace_register_names(registry): registry.add('gradients', 'os:sep')",
        ("the name headrace.gradients at os:sep would replace that of", "fix plugin '@'"),
    ),
    "core's name": Attack(
        "@hookimpl\ndef headrace_register_names(registry): registry.add('matmul', 'os:sep')",
        ("the name headrace.matmul", "a name of core cannot be replaced"),
    ),
    "core's name on request": Attack(
        "@hookimpl\ndef headrace_register_names(registry):\n"
        "    registry.add('matmul', 'os:sep', override='better')",
        ("a name of core cannot be replaced",),
    ),
    "module of a name raises": Attack(
        "@hookimpl\ndef headrace_register_names(registry):\n"
        "    registry.add('fancy', f'{__name__}_inside')\n",
        ("headrace.fancy is provided by plugin '@', in plugin_@_inside, which fails to import",),
        f"{RUN_FANCY}\nattempt(lambda: hr.fancy)",
        state="loaded",
    ),
    "attribute of a name is missing": Attack(
        "@hookimpl\ndef headrace_register_names(registry): registry.add('fancy', 'os:nothing')\n",
        ("headrace.fancy is provided by plugin '@', in os, which has no 'nothing'",),
        f"{RUN_FANCY}\nattempt(lambda: hr.fancy)",
        state="loaded",
    ),
    "core's module": Attack(
        "@hookimpl\ndef headrace_register_names(registry): registry.add('session', 'os:sep')",
        ("the name headrace.session", "a name of core cannot be replaced"),
    ),
    "device kind": Attack(
        device("'cpu', count=lambda: 1, factory=print"),
        ("the device kind 'cpu' at", "would replace that of plugin 'cpu'"),
    ),
    "count raises": Attack(
        device("'odd', count=lambda: 1 / 0, factory=print"),
        (
            "the count of device kind 'odd' failed: ZeroDivisionError: division by zero",
            "in plugin '@'",
        ),
        state="faulty",
    ),
    "count is no number": Attack(
        device("'odd', count=lambda: 'many', factory=print"),
        ("the count of device kind 'odd' failed: TypeError", "in plugin '@'"),
        state="faulty",
    ),
    "count ends the program": Attack(
        device("'odd', count=lambda: exit('no licence'), factory=print"),
        ("the count of device kind 'odd' failed: SystemExit: no licence", "in plugin '@'"),
        state="faulty",
    ),
    "count is absurd": Attack(
        device("'odd', count=lambda: 10**9, factory=print"),
        ("the count of device kind 'odd' failed: ValueError: it returned 1000000000",),
        state="faulty",
    ),
    "why_none raises": Attack(
        device("'odd', count=lambda: 0, factory=print, why_none=lambda: [][0]"),
        ("why_none of device kind 'odd' failed: IndexError", "in plugin '@'"),
        state="faulty",
    ),
    "factory raises": Attack(
        device("'odd', count=lambda: 1, factory=lambda name: {}[name]")
        + fancy_kernel("    1")
        + "@hookimpl\ndef headrace_declare_ops(): pass\n",
        ("opening the device '/job:localhost/task:0/device:odd:0' failed: KeyError", "plugin '@'"),
        f"{RUN_FANCY}\nfrom headrace.plugins.host import host\n"
        "from headrace.extend import DeviceName\n"
        "attempt(lambda: host().open_device(DeviceName('localhost', 0, 'odd', 0)))",
        state="loaded",
    ),
    "factory makes no device": Attack(
        device("'odd', count=lambda: 1, factory=print"),
        ("'NoneType' is no device: it has no name, xp", "in plugin '@'"),
        f"{RUN_FANCY}\nfrom headrace.plugins.host import host\n"
        "from headrace.extend import DeviceName\n"
        "attempt(lambda: host().open_device(DeviceName('localhost', 0, 'odd', 0)))",
        state="loaded",
    ),
    "limits raise": Attack(
        device("'odd', count=lambda: 1, factory=lambda name: Odd('1 / 0')") + ODD_DEVICE,
        (
            "the limits of /job:localhost/task:0/device:odd:0 failed: ZeroDivisionError",
            "plugin '@'",
        ),
        f"{RUN_FANCY}\nfrom headrace.plugins.host import host\n"
        "from headrace.extend import DeviceName\n"
        "attempt(lambda: host().limits(DeviceName('localhost', 0, 'odd', 0), None))",
        state="loaded",
    ),
    "limits are none": Attack(
        device("'odd', count=lambda: 1, factory=lambda name: Odd('12')") + ODD_DEVICE,
        ("'int' is no statement of limits: it has no bytes_per_second", "in plugin '@'"),
        f"{RUN_FANCY}\nfrom headrace.plugins.host import host\n"
        "from headrace.extend import DeviceName\n"
        "attempt(lambda: host().limits(DeviceName('localhost', 0, 'odd', 0), None))",
        state="loaded",
    ),
    "clash in a second table": Attack(
        FANCY
        + ADD_KERNELS
        + ADD_GRADIENTS
        + "@KERNELS.plain('Fancy')\ndef kernel(xp, x): return x + x\n"
        + "@GRADIENTS.add('Sin')\ndef sin(op, gy): return [gy]",
        ("the gradient rule of Sin at", "nothing of it is left"),
        """
from headrace.plugins.host import host
left = host().kernels.devices_of("Fancy"), host().names.get("fancy"), hr.gradients
from headrace.extend import OPS
assert left[:2] == ([], None), left
assert OPS.get("Fancy") is None
print("nothing of it is left")
""",
    ),
    "hook raises after others": Attack(
        FANCY
        + ADD_KERNELS
        + "@KERNELS.plain('Fancy')\ndef kernel(xp, x): return x + x\n"
        + "@hookimpl\ndef headrace_register_targets(registry):\n"
        + "    registry.add('fancy', print)\n    raise OSError('no licence')",
        ("headrace_register_targets: OSError: no licence", "nothing of it is left"),
        """
from headrace.plugins.host import host
assert host().targets.get("fancy") is None
assert host().kernels.devices_of("Fancy") == []
print("nothing of it is left")
""",
    ),
    "registers later": Attack(
        "kept = []\n@hookimpl\ndef headrace_register_kernels(registry): kept.append(registry)\n",
        ("a registry is filled in the hook headrace_register_kernels only",),
        f"{RUN_FANCY}\nimport plugin_@ as plugin\nattempt(lambda: plugin.kept[0].add('cpu', []))",
        state="loaded",
    ),
    "op of core": Attack(
        "@op('Sin')\ndef sin(x: Floating) -> Spec:\n    'Mine.'\n    return x",
        ("op 'Sin' is declared twice: at headrace.ops",),
    ),
    "wrong version": Attack(
        "headrace_api = 99\n" + fancy_kernel("    return x + x"),
        ("built for version 99 of the plugin interface", "supports 1", "upgrade headrace-core"),
    ),
    "old version": Attack("headrace_api = 0\n", ("built for version 0", "supports 1; upgrade")),
    "version that is none": Attack(
        "headrace_api = '1.0'\n", ("headrace_api must be a whole number", "got '1.0'")
    ),
    "override without a reason": Attack(
        "@KERNELS.plain('Sin', override=True)\ndef sin(xp, x): return x",
        ('override takes the reason, as in override="faster", got True',),
    ),
    "diagnose raises": Attack(
        "@hookimpl\ndef headrace_diagnose(): raise OSError('no driver')",
        ("headrace_diagnose failed: OSError: no driver", "in plugin '@'", "no problems"),
        "from headrace.cli.main import main\nmain(['doctor'])\nprint('no problems elsewhere')",
        state="loaded",
    ),
    "runtime target": Attack(
        "@hookimpl\ndef headrace_register_targets(registry): registry.add('mpi', print)",
        ("the opener of session targets mpi:... at", "would replace that of plugin 'mpi'"),
    ),
    "opener raises": Attack(
        "def open_fancy(target, config): raise OSError('no route')\n"
        "@hookimpl\ndef headrace_register_targets(registry): registry.add('fancy', open_fancy)",
        ("opening the target 'fancy:1' failed: OSError: no route", "in plugin '@'"),
        f"{RUN_FANCY}\nattempt(lambda: hr.Session('fancy:1'))",
        state="loaded",
    ),
    "opener returns nonsense": Attack(
        "@hookimpl\ndef headrace_register_targets(registry): registry.add('fancy', lambda t, c: 7)",
        ("'int' is no runtime: it has no machine, register, close", "in plugin '@'"),
        f"{RUN_FANCY}\nattempt(lambda: hr.Session('fancy:1'))",
        state="loaded",
    ),
    "kernel writes into its input": Attack(
        fancy_kernel("    x *= 2\n    return x"),
        ("Fancy failed: ValueError", "read-only", IN_KERNEL, "in Fancy 'Fancy'"),
        RUN_ALL,
        state="loaded",
    ),
    "kernel returns the wrong dtype": Attack(
        fancy_kernel("    return (x + x).astype(np.float64)"),
        (IN_KERNEL, "returned float64[2], and Fancy declares float32[2]; fix plugin '@'"),
        RUN_ALL,
        state="loaded",
    ),
    "kernel returns the wrong shape": Attack(
        fancy_kernel("    return np.concatenate([x, x])"),
        (IN_KERNEL, "returned float32[4], and Fancy declares float32[2]; fix plugin '@'"),
        RUN_ALL,
        state="loaded",
    ),
    "kernel returns too much": Attack(
        fancy_kernel("    return x + x, x + x"),
        (IN_KERNEL, "returned 2 outputs, and Fancy declares 1"),
        RUN_ALL,
        state="loaded",
    ),
    "kernel returns no array": Attack(
        fancy_kernel("    return None"),
        (IN_KERNEL, "returned NoneType None, and Fancy declares float32[2]"),
        RUN_ALL,
        state="loaded",
    ),
    "kernel raises": Attack(
        fancy_kernel("    return x.no_such_thing"),
        ("Fancy failed: AttributeError", IN_KERNEL, "in Fancy 'Fancy'"),
        RUN_ALL,
        state="loaded",
    ),
    "specialized kernel returns the wrong dtype": Attack(
        fancy_kernel("    return lambda x: np.int32(1)", "specialized", "node"),
        (IN_KERNEL, "returned int32[], and Fancy declares float32[2]"),
        RUN_ALL,
        state="loaded",
    ),
    "kernel factory raises": Attack(
        fancy_kernel("    return node.no_such_thing", "specialized", "node"),
        ("the kernel factory of plugin '@' at", "failed: AttributeError", "for Fancy 'Fancy'"),
        RUN_ALL,
        state="loaded",
    ),
    "kernel factory makes nonsense": Attack(
        fancy_kernel("    return 7", "specialized", "node"),
        ("the kernel factory of plugin '@' at", "returned 7, and must return a function"),
        RUN_ALL,
        state="loaded",
    ),
    "kernel keeps what it returns": Attack(
        fancy_kernel("    OUT[:] = x * 2\n    return OUT") + "OUT = np.zeros(2, np.float32)\n",
        ("fetched is kept apart",),
        f"""{RUN_FANCY}
for executor in ("plain", "plan"):
    with hr.Graph().as_default():
        v = hr.placeholder(hr.float32, [2], name="v")
        y = hr.fancy(v)
        with hr.Session(config=hr.Config(executor=executor)) as session:
            first = session.run(y, {{v: fed}})
            session.run(y, {{v: fed * 5}})
            assert first.tolist() == [2.0, 4.0], first
            first[:] = 7
            assert session.run(y, {{v: fed}}).tolist() == [2.0, 4.0]
print("fetched is kept apart")
""",
        state="loaded",
    ),
    "kernel hands out its input": Attack(
        fancy_kernel("    return x"),
        ("fetched is kept apart",),
        f"""{RUN_FANCY}
for executor in ("plain", "plan"):
    with hr.Graph().as_default():
        v = hr.placeholder(hr.float32, [2], name="v")
        with hr.Session(config=hr.Config(executor=executor)) as session:
            session.run(hr.fancy(v), {{v: fed}})[:] = 7
            assert fed.tolist() == [1.0, 2.0]
print("fetched is kept apart")
""",
        state="loaded",
    ),
    "rule raises": Attack(
        fancy_rule("    return [gy.no_such_thing]"),
        ("the gradient rule of Fancy failed: AttributeError", "in plugin '@'", "Fancy 'Fancy'"),
        differentiated(),
        state="loaded",
    ),
    "rule returns too many": Attack(
        fancy_rule("    return [gy, gy]"),
        ("the gradient rule of Fancy returned 2 gradients for 1 inputs", "in plugin '@'"),
        differentiated(),
        state="loaded",
    ),
    "rule returns no tensor": Attack(
        fancy_rule("    return [gy.op]"),
        ("the gradient rule of Fancy returned", "which is no tensor", "in plugin '@'"),
        differentiated(),
        state="loaded",
    ),
    "rule returns a thing": Attack(
        fancy_rule("    return [{'a': object()}]"),
        ("the gradient rule of Fancy returned", "which is no tensor", "in plugin '@'"),
        differentiated(),
        state="loaded",
    ),
    "rule returns the wrong shape": Attack(
        fancy_rule("    import headrace as hr\n    return [hr.concat([gy, gy], 0)]"),
        ("the gradient rule of Fancy returned shape [4]", "in plugin '@'"),
        differentiated(),
        state="loaded",
    ),
    "rule returns the wrong dtype": Attack(
        fancy_rule("    import headrace as hr\n    return [hr.cast(gy, hr.float64)]"),
        ("the gradient rule of Fancy returned float64", "in plugin '@'"),
        differentiated(),
        state="loaded",
    ),
    "shape rule raises": Attack(
        FANCY.replace("    return x", "    return x.no_such_thing"),
        ("the rule of Fancy failed: AttributeError", "in package plugin_@, at plugin_@:"),
        f"{RUN_FANCY}\nattempt(lambda: hr.fancy(hr.constant([1.0])))",
        state="loaded",
    ),
    "shape rule returns nonsense": Attack(
        FANCY.replace("    return x", "    return 'float32'"),
        ("the rule of Fancy returned 'float32'", "in package plugin_@"),
        f"{RUN_FANCY}\nattempt(lambda: hr.fancy(hr.constant([1.0])))",
        state="loaded",
    ),
}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a program beside plugins of some code; return what it prints, and their states."""
    ours = list(entry_points(group="headrace"))
    # All of ours: modules that were imported once declare no ops again.
    host_module.host().declare_ops()
    known = {schema.type for schema in OPS}
    official = [*OFFICIAL, "fancy"]

    def forget() -> None:
        for name in official:
            vars(hr).pop(name, None)
        OPS.forget({schema.type for schema in OPS} - known)

    def run(program: str, **plugins: str) -> tuple[str, dict[str, PluginState]]:
        entries = []
        for name, code in plugins.items():
            (tmp_path / f"plugin_{name}.py").write_text(HEAD + code)
            entries.append(EntryPoint(name, f"plugin_{name}", "headrace"))
            monkeypatch.delitem(sys.modules, f"plugin_{name}", raising=False)
        monkeypatch.syspath_prepend(str(tmp_path))
        found = sorted([*ours, *entries], key=lambda entry: entry.name)
        host = host_module.PluginHost(found)
        monkeypatch.setattr(host_module, "_HOST", host)
        forget()
        with hr.Graph().as_default():
            exec(compile(program, "<program>", "exec"), {"__name__": "program"})
        host.ask_all()
        return capsys.readouterr().out, {state.name: state for state in host.plugins()}

    yield run
    forget()


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
def test_attack_blames_the_intruder_and_all_else_works(kind, name, run):
    attack = ATTACKS[kind]
    if kind == "runtime target":
        pytest.importorskip("headrace_mpi")
    printed, states = run(OTHERS + attack.uses.replace("@", name), **{name: attack.code})
    assert states[name].state == attack.state, states[name]
    said = printed + states[name].reason
    assert "no error" not in printed
    assert [text for text in attack.says if text.replace("@", name) not in said] == [], said
    assert {s.state for s in states.values() if s.name != name} == {"loaded"}, states


def test_op_declared_by_two_plugins(run):
    code = fancy_kernel("    return x + x")
    program = f"{OTHERS}\nprint(hr.Session().run(hr.fancy(hr.constant([1.0, 2.0]))).tolist())"
    printed, states = run(program, aaa=code, bbb=code)
    assert printed.strip() == "[2.0, 4.0]"
    assert states["aaa"].state == "loaded"
    assert states["bbb"].state == "broken"
    assert "op 'Fancy' is declared twice: at plugin_aaa" in states["bbb"].reason
    assert "and at plugin_bbb" in states["bbb"].reason


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
def test_closing_does_not_hang_on_a_kernel_that_waits(add, says, run):
    printed, states = run(OTHERS + CLOSE, aaa=CANCEL.replace("ADD", add))
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
def test_waiting_kernel_answers_once_and_rightly(body, says, run):
    program = f"{OTHERS}{RUN_FANCY}\nattempt(lambda: hr.Session().run(hr.fancy(hr.constant(fed))))"
    printed, _ = run(program, aaa=CANCEL.replace("ADD", body))
    assert says in printed
    assert "plugin 'aaa'" in printed


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


def test_override_replaces_and_is_shown(run):
    printed, states = run(SHOWN, aaa=OVERRIDE)
    result, *shown = printed.split("==")
    assert states["aaa"].state == "loaded"
    kernel = "the kernel for Sin on cpu, of plugin 'cpu', is replaced by plugin 'aaa' at"
    assert kernel in result
    for text in shown:
        assert kernel in " ".join(text.split())
        assert "it is a test" in text
        assert "the gradient rule of Sin, of plugin 'autodiff', is replaced by" in text


def test_a_clash_in_rules_shows_before_a_kernel_is_used(run):
    """Rules are collected when gradients are asked for; a session must not wait for that."""
    program = """
import headrace as hr
from headrace.plugins.host import host
assert host().kernels.devices_of("Fancy") == []
assert host().kernels.covers("Sin", "cpu", hr.float32)
assert "gradients" not in vars(host())
"""
    _, states = run(program, aaa=ATTACKS["clash in a second table"].code)
    assert states["aaa"].state == "broken"
    assert "the gradient rule of Sin at plugin_aaa:" in states["aaa"].reason
    assert "of plugin 'autodiff' at headrace_autodiff.rules" in states["aaa"].reason


def test_two_requests_for_one_thing(run):
    code = ADD_KERNELS + "@KERNELS.plain('Sin', override='WHY')\ndef sin(xp, x): return x * 0 + 7\n"
    program = "assert hr.Session().run(hr.sin([0.5])).tolist() == [7.0]"
    _, states = run(
        "import headrace as hr\n" + program,
        aaa=code.replace("WHY", "one"),
        bbb=code.replace("WHY", "other"),
    )
    assert states["aaa"].state == "loaded"
    assert states["bbb"].state == "broken"
    assert "of plugin 'aaa' at plugin_aaa" in states["bbb"].reason
    assert "which asks for the same" in states["bbb"].reason
