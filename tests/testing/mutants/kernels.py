"""Faults of kernels, and of what the declarations of ops say of them."""

from __future__ import annotations

from tests.testing.mutants.mutant import (
    BLEND,
    BLEND_KERNEL,
    COUNT,
    CUBE,
    CUBE_KERNEL,
    NOISE,
    ROWS,
    TOTAL,
    Mutant,
)

KERNEL_MUTANTS = [
    # values
    Mutant(
        "the value is 1 % off",
        CUBE_KERNEL,
        "def cube_kernel(xp, x):\n    return x * x * x * x.dtype.type(1.01)",
        "elements are off; the worst is",
        CUBE,
    ),
    Mutant(
        "the sign of negative inputs is lost",
        CUBE_KERNEL,
        "def cube_kernel(xp, x):\n    return abs(x * x * x)",
        r"expected -\d.*, got \d",
        CUBE,
    ),
    Mutant(
        "what is not a number becomes one",
        CUBE_KERNEL,
        "def cube_kernel(xp, x):\n    return xp.where(x == x, x * x * x, x.dtype.type(0))",
        r"MillCube-2-forward[\s\S]*expected nan, got 0",
        CUBE,
    ),
    Mutant(
        "a broadcast is missing",
        BLEND_KERNEL,
        "    assert x.shape == y.shape\n" + BLEND_KERNEL,
        r"MillBlend-broadcast[\s\S]*AssertionError",
        BLEND,
    ),
    Mutant(
        "the attribute is not used",
        "    part = x.dtype.type(share)",
        "    part = x.dtype.type(0.25)",
        "elements are off",
        BLEND,
    ),
    Mutant(
        "the arguments are exchanged",
        BLEND_KERNEL,
        "    x, y = y, x\n" + BLEND_KERNEL,
        "elements are off",
        BLEND,
    ),
    Mutant(
        "empty inputs fail",
        CUBE_KERNEL,
        "def cube_kernel(xp, x):\n    assert x.max() < 1e9\n    return x * x * x",
        r"MillCube-\d-empty[\s\S]*the op fails",
        CUBE,
    ),
    Mutant(
        "inputs without dimensions fail",
        CUBE_KERNEL,
        "def cube_kernel(xp, x):\n    assert len(x.shape)\n    return x * x * x",
        r"MillCube-\d-scalar[\s\S]*the op fails",
        CUBE,
    ),
    Mutant(
        "inputs without dimensions gain one",
        CUBE_KERNEL,
        "def cube_kernel(xp, x):\n    return xp.atleast_1d(x * x * x)",
        r"-scalar[\s\S]*(declared float\d+\[\], got shape \[1\]|(yields|returned) float\d+\[1\])",
        CUBE,
    ),
    Mutant(
        "a kernel that is seldom the best is wrong",
        '    return xp.einsum("...i,...i->...", x, x)',
        '    return xp.einsum("...i,...i->...", x, x) * np.float32(2)',
        r"float32, kernel at headrace_mill:\d+: output 0",
        TOTAL,
    ),
    # dtypes and shapes
    Mutant(
        "the dtype is not the declared one",
        CUBE_KERNEL,
        "def cube_kernel(xp, x):\n    return (x * x * x).astype(np.float64)",
        r"is declared float\d+.*got float64|yields float64",
        CUBE,
    ),
    Mutant(
        "one dtype fails",
        CUBE_KERNEL,
        'def cube_kernel(xp, x):\n    assert x.dtype != "float16"\n    return x * x * x',
        r"float16: the op fails|float16.*fails: AssertionError",
        CUBE,
    ),
    Mutant(
        "one dtype has no kernel",
        '@KERNELS.plain("MillCube")',
        '@KERNELS.plain("MillCube", dtypes=["float32", "float64"])',
        "has no kernel of MillCube for float16",
        CUBE,
    ),
    Mutant(
        "the static shape is wrong",
        "    return x.with_shape(x.shape[:-1] if x.rank is not None else None)",
        "    return x.with_shape(x.shape[1:] if x.rank is not None else None)",
        r"(is declared|declared) float\d+\[3, 4\].*|yields float\d+\[2, 3\] for output 0, declared",
        TOTAL,
    ),
    Mutant(
        "the static shape is wrong where the rank is unknown",
        "    return x.with_shape(x.shape[:-1] if x.rank is not None else None)",
        "    return x.with_shape(x.shape[:-1] if x.rank is not None else [3])",
        r"unknown_shapes[\s\S]*unknown rank[\s\S]*(declared|declares) float32\[3\]",
        TOTAL,
    ),
    Mutant(
        "the shape is known of constants, and not inferred",
        "        return x.with_shape([None, None])\n"
        "    return x.with_shape([int(count.value[0]), x.shape[1]])",
        "        pass\n    return x.with_shape([None, None])",
        "though all inputs are constants",
        ROWS,
    ),
    # memory
    Mutant(
        "the kernel writes into its input",
        CUBE_KERNEL,
        "def cube_kernel(xp, x):\n    out = x * x * x\n"
        "    if x.flags.writeable and x.ndim:\n        x[...] = 0\n    return out",
        "writes into its input 0|changed its input 0",
        CUBE,
    ),
    Mutant(
        "the kernel computes in place",
        CUBE_KERNEL,
        "def cube_kernel(xp, x):\n    y = x * x\n    x *= y\n    return x",
        "writes into its input|read-only|changed its input",
        CUBE,
    ),
    Mutant(
        "the kernel returns the memory of its input",
        BLEND_KERNEL,
        "    if share == 0.125 and y.dtype == 'float16':\n        return y\n" + BLEND_KERNEL,
        "returns the memory of its input 1|elements are off",
        BLEND,
    ),
    Mutant(
        "the kernel keeps its input",
        CUBE_KERNEL,
        "def cube_kernel(xp, x):\n    BOX.append(x)\n    return x * x * x",
        "keeps its input 0 after the call",
        CUBE,
    ),
    Mutant(
        "the kernel answers from what it saw before",
        CUBE_KERNEL,
        "def cube_kernel(xp, x):\n    return SEEN.setdefault((x.shape, x.dtype), x * x * x).copy()",
        "elements are off",
        CUBE,
    ),
    Mutant(
        "the kernel reads the memory of a strided input as if it had no gaps",
        CUBE_KERNEL,
        "def cube_kernel(xp, x):\n"
        "    flat = np.lib.stride_tricks.as_strided(x, (x.size,), (x.itemsize,)) if x.size else x\n"
        "    return (flat * flat * flat).reshape(x.shape)",
        r"strided|reversed|Fortran",
        CUBE,
    ),
    Mutant(
        "read-only inputs fail",
        CUBE_KERNEL,
        "def cube_kernel(xp, x):\n    assert x.flags.writeable\n    return x * x * x",
        r"read-only|fails: AssertionError|the op fails",
        CUBE,
    ),
    # what is not declared
    Mutant(
        "an op that draws is declared pure",
        '@op("MillNoise", effects="draws", no_gradient="it draws")',
        '@op("MillNoise", no_gradient="it draws")',
        "other bits when it is called again|other bits when the step is run again",
        NOISE,
    ),
    Mutant(
        "random bits come from the process, not from the node's stream",
        "    bits = np.random.Philox(key=np.array(key, np.uint64), counter=draw << 64)",
        "    bits = np.random.PCG64()",
        "other bits in a second session with the same seeds",
        NOISE,
    ),
    Mutant(
        "results are not the same from call to call",
        CUBE_KERNEL,
        "def cube_kernel(xp, x):\n    BOX[0] += 1\n"
        "    return x * x * x * x.dtype.type(1 + 1e-13 * BOX[0])",
        "other bits when it is called again|other bits when the step is run again",
        CUBE,
    ),
    Mutant(
        "an input that the kernel reads on the host is not declared",
        '    host_inputs=["count"],\n',
        "",
        "on cuda:0.*the op fails[\\s\\S]*Implicit conversion to a NumPy array",
        ROWS,
    ),
    Mutant(
        "an array of the host meets one of the device",
        BLEND_KERNEL,
        "    part = np.full(x.shape, share, x.dtype)\n" + BLEND_KERNEL,
        r"on cuda:0.*the op fails",
        BLEND,
    ),
    Mutant(
        "an op with state is declared pure",
        '@op("MillCount", stateful=True, no_gradient="it counts")',
        '@op("MillCount", no_gradient="it counts")',
        r"scenario 'counting', step \d .* yields",
        COUNT,
    ),
    Mutant(
        "state leaks from session to session",
        "        self.count = 0\n\n    def reset",
        "        self.box = BOX\n\n    count = property(\n"
        "        lambda self: BOX[0], lambda self, value: BOX.__setitem__(0, value)\n    )\n\n"
        "    def reset",
        r"scenario 'counting', step \d .*second session.* yields",
        COUNT,
    ),
    Mutant(
        "an op is called elementwise that is not",
        '@op("MillTotal", reduction=True)',
        '@op("MillTotal", elementwise=True)',
        r"MillTotal-scalar[\s\S]*the op fails",
        TOTAL,
    ),
]
