"""Faults of errors, of what a plugin registers, and of devices."""

from __future__ import annotations

from tests.testing.mutants.mutant import HOOK, ROWS, Mutant

OTHER = '''
from headrace.extend import Floating, KernelTable, GradientTable, Spec, hookimpl, op

@op("MillerOp", elementwise=True, no_gradient="none")
def miller_op(x: Floating) -> Spec:
    """Another op."""
    return x

KERNELS, GRADIENTS = KernelTable(), GradientTable()

@KERNELS.plain("MillCube")
def cube(xp, x):
    return x

@GRADIENTS.add("MillCube")
def slope(node, gy):
    return [gy]

'''

PLUGIN_MUTANTS = [
    # documents and errors
    Mutant(
        "the kernel raises in words of its own library",
        '        raise ValueError(f"count must be in [0, {x.shape[0]}], got {n}")',
        "        return x.reshape(99)",
        r"expected a message with 'count must be in'",
        ROWS,
    ),
    Mutant(
        "what must be refused is not",
        "    if not 0 <= n <= x.shape[0]:",
        "    if False:",
        "expected HeadraceError, the step succeeded|declare",
        ROWS,
    ),
    # being there at all
    Mutant(
        "the plugin does not load",
        "import numpy as np\n",
        "import numpy as np\nimport libmill\n",
        r"plugin 'mill' .* is broken: ModuleNotFoundError: No module named 'libmill'",
    ),
    Mutant(
        "a hook raises",
        HOOK,
        '    registry.add("cpu", KERNELS)\n    raise OSError("libmill.so")\n',
        r"plugin 'mill' .* is broken: [\s\S]*OSError: libmill.so",
    ),
    Mutant(
        "the kernels are not registered",
        HOOK,
        "",
        "half registered:[\\s\\S]*MillTotal has no kernel on any device",
        None,
    ),
    Mutant(
        "the public name leads nowhere",
        '"headrace_mill:mill_cube"',
        '"headrace_mill:mill_cubed"',
        "headrace.mill_cube cannot be had",
    ),
    Mutant(
        "no hook is marked",
        "@hookimpl\ndef headrace_register_kernels",
        "def headrace_register_kernels",
        "the kernel of MillCube on cpu at headrace_mill:\\d+ is not in force|no kernel",
    ),
    Mutant(
        "the plugin is disabled",
        "import numpy as np\n",
        "import numpy as np  \n",
        "plugin 'mill' .* is disabled: named in HEADRACE_DISABLE_PLUGINS",
        env=(("HEADRACE_DISABLE_PLUGINS", "mill"),),
    ),
    Mutant(
        "an op of core is declared again",
        '@op("MillCube", elementwise=True)\ndef mill_cube',
        '@op("Sin", elementwise=True)\ndef mill_cube',
        r"plugin 'mill' .* is broken: [\s\S]*Sin",
    ),
    Mutant(
        "a kernel of core's op is registered as well",
        '@KERNELS.plain("MillCube")',
        '@KERNELS.plain("Sin")\ndef sin(xp, x):\n    return x\n\n\n@KERNELS.plain("MillCube")',
        r"plugin 'mill' .* is broken: [\s\S]*Sin",
    ),
    Mutant(
        "a kernel that replaces core's on request is wrong",
        '@KERNELS.plain("MillCube")',
        '@KERNELS.plain("Sin", priority=99, override="it is faster")\ndef sin(xp, x):\n'
        '    return x\n\n\n@KERNELS.plain("MillCube")',
        r"Sin(-\d)?-forward[\s\S]*elements are off",
        ("Sin",),
    ),
    Mutant(
        "a gradient of core's op is registered as well",
        '@GRADIENTS.add("MillCube")',
        '@GRADIENTS.add("Sin")\ndef no(node, gy):\n    return [gy * 0.0]\n\n\n'
        '@GRADIENTS.add("MillCube")',
        r"plugin 'mill' .* is broken: [\s\S]*Sin",
    ),
    Mutant(
        "a public name of core is taken",
        '    registry.add("mill_cube", ',
        '    registry.add("matmul", "headrace_mill:mill_cube")\n    registry.add("mill_cube", ',
        r"is half registered:[\s\S]*headrace.matmul is not|is broken: [\s\S]*matmul",
    ),
    Mutant(
        "the device kind of another plugin is taken",
        '    registry.add("mill", count',
        '    registry.add("cpu", count=lambda: 1, factory=MillDevice)\n'
        '    registry.add("mill", count',
        r"plugin 'mill' .* is broken: [\s\S]*cpu",
    ),
    Mutant(
        "a kernel of another plugin's op is registered",
        '@KERNELS.plain("MillCube")',
        '@KERNELS.plain("MillerOp")\ndef miller(xp, x):\n    return x\n\n\n'
        '@KERNELS.plain("MillCube")',
        r"plugin 'mill' .* is broken: [\s\S]*MillerOp",
        beside=OTHER.split("KERNELS, GRADIENTS")[0]
        + "KERNELS = KernelTable()\n\n@KERNELS.plain('MillerOp')\ndef one(xp, x):\n    return x\n\n"
        "@hookimpl\ndef headrace_register_kernels(registry):\n    registry.add('cpu', KERNELS)\n",
    ),
    # devices
    Mutant(
        "the device loses strides",
        "    def from_host(self, array):\n        return array.copy()",
        "    def from_host(self, array):\n        return np.lib.stride_tricks.as_strided(\n"
        "            array, strides=np.empty(array.shape, array.dtype).strides\n        ).copy()",
        r"device 'mill': a (strided|reversed|Fortran-ordered) .* array",
    ),
    Mutant(
        "the device loses dtypes",
        "        return np.asarray(array)",
        "        return np.asarray(array, np.float64 if array.dtype == np.float32 else None)",
        r"device 'mill': a contiguous float32\[.*\] array comes back as float64",
    ),
    Mutant(
        "the device loses arrays without dimensions",
        "    def from_host(self, array):\n        return array.copy()",
        "    def from_host(self, array):\n        return np.atleast_1d(array).copy()",
        r"device 'mill': a contiguous .*\[\] array comes back with shape \[1\]",
    ),
    Mutant(
        "the device mixes sessions",
        "    def from_host(self, array):\n        return array.copy()",
        "    first = {}\n\n    def from_host(self, array):\n"
        "        return self.first.setdefault((array.shape, array.dtype), array.copy())",
        r"device 'mill': .*(other values|two sessions mix)",
    ),
    Mutant(
        "the device is not there, and nobody says why",
        '    registry.add("mill", count=lambda: 1',
        '    registry.add("mill", count=lambda: 0',
        r"why_none\(\) does not say why",
    ),
    Mutant(
        "counting the devices fails",
        '    registry.add("mill", count=lambda: 1',
        '    registry.add("mill", count=lambda: 1 // 0',
        r"ZeroDivisionError",
    ),
    Mutant(
        "the device does not open",
        "    def __init__(self, name):\n        self.name = name",
        "    def __init__(self, name):\n        raise OSError('no such card')",
        r"device 'mill': it does not open: .*no such card",
    ),
]
