"""Plugins that take, break or hang what is not theirs, and what is said of each."""

from __future__ import annotations

from typing import NamedTuple

from tests.contracts.plugin_parts import (
    ADD_GRADIENTS,
    ADD_KERNELS,
    FANCY,
    ODD_DEVICE,
    RUN_ALL,
    RUN_FANCY,
    device,
    differentiated,
    fancy_kernel,
    fancy_rule,
)


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
