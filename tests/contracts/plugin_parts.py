"""Texts that plugins, and the programs that use them, are put together from."""

from __future__ import annotations

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
