"""A plugin package of a third party: built, installed, used, and broken in every way."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.children import run_program, run_python

EXAMPLE = Path(__file__).parents[1] / "plugin_examples" / "cube"

pytestmark = pytest.mark.needs("core", "autodiff", "backend-cpu")


def python(*arguments: str, path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a Python process that finds what is installed in the folder ``path``, too."""
    return run_python(*arguments, env={"PYTHONPATH": str(path), **env}, cwd=path, check=False)


def output_of(program: str, *, path: Path, **env: str) -> str:
    done = python("-c", program, path=path, **env)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def install(wheel: Path, target: Path) -> None:
    """Install a pure wheel, which is a matter of unpacking it."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the example's wheel is installed."""
    pytest.importorskip("hatchling", reason="the example's build backend is not installed")
    work = tmp_path_factory.mktemp("example")
    source = shutil.copytree(EXAMPLE, work / "source")
    build = "from hatchling.build import build_wheel; print(build_wheel('..'))"
    done = run_program(build, cwd=source)
    target = work / "site"
    install(work / done.stdout.strip().splitlines()[-1], target)
    return target


def write_plugin(folder: Path, name: str, code: str, entry: str | None = None) -> None:
    """Install a package of one module, without the detour of a wheel."""
    module = f"plugin_{name}"
    (folder / f"{module}.py").write_text(code)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: plugin-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[headrace]\n{entry or name} = {module}\n")


USE = """
import numpy as np
import headrace as hr

x = hr.placeholder(hr.float32, [None])
y = hr.cube(x)
(g,) = hr.gradients(y, [x])
with hr.Session() as session:
    values = session.run([y, g], {x: [1.0, -2.0]})
print(*(v.tolist() for v in values))
"""
# What every installation can do, whatever plugin is broken; then what ``plugins --json`` prints.
OTHERS = """
import headrace as hr
from headrace.cli.main import main

x = hr.constant([1.0, 2.0])
(g,) = hr.gradients(hr.square(x), [x])
print(hr.Session().run(g).tolist())
main(["plugins", "--json"])
"""


def test_op_gradient_and_kernel_work(site):
    assert output_of(USE, path=site) == "[1.0, -8.0] [3.0, 12.0]"


def test_conformance_passes(site):
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLE / "tests")]
    done = python(*arguments, "--rootdir", str(EXAMPLE), "-c", os.devnull, path=site)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
    assert "failed" not in done.stdout


def test_example_is_short():
    tree = ast.parse((EXAMPLE / "src" / "headrace_cube" / "__init__.py").read_text())
    code = {
        line
        for node in ast.walk(tree)
        for line in [getattr(node, "lineno", 0)]
        if isinstance(node, ast.stmt) and not _is_docstring(node)
    }
    decorators = sum(len(getattr(node, "decorator_list", ())) for node in ast.walk(tree))
    assert len(code) + decorators < 30


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def test_command_lists_it(site):
    done = python("-m", "headrace", "plugins", "--json", path=site)
    states = {state["name"]: state for state in json.loads(done.stdout)}
    assert states["cube"]["state"] == "loaded"
    assert states["cube"]["distribution"] == "headrace-cube 1.0.0"
    shown = python("-m", "headrace", "ops", "Cube", path=site)
    assert "x * x * x" in shown.stdout


def test_graph_document_finds_its_op(site, tmp_path):
    write = "import headrace as hr; hr.cube(hr.placeholder('float32')); "
    write += "print(hr.get_default_graph().to_document())"
    text = output_of(write, path=site)
    (tmp_path / "graph.json").write_text(text)
    read = f"""
import pathlib, headrace as hr
graph = hr.Graph.from_document(pathlib.Path({str(tmp_path / "graph.json")!r}).read_text())
print([op.type for op in graph.operations])
"""
    assert output_of(read, path=site) == "['Placeholder', 'Cube']"


def test_disabled_plugin_is_not_imported(site):
    program = """
import sys, headrace as hr
hr.Session().run(hr.constant(1.0))
assert "headrace_cube" not in sys.modules
try:
    hr.cube
except AttributeError as error:
    print(error)
"""
    text = output_of(program, path=site, HEADRACE_DISABLE_PLUGINS="cube")
    assert "headrace has no attribute 'cube'" in text
    done = python("-m", "headrace", "plugins", path=site, HEADRACE_DISABLE_PLUGINS="cube")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("cube")]
    assert "disabled" in line


HOOK = "from headrace.extend import hookimpl\n"
# Name -> (the module's code, what the reason must say).
BROKEN = {
    "import": ("import library_that_is_missing", "No module named 'library_that_is_missing'"),
    "raises": ("raise RuntimeError('no licence found')", "RuntimeError: no licence found"),
    "hook": (
        HOOK + "@hookimpl\ndef headrace_register_kernels(registry): raise OSError('libfast.so.3')",
        "headrace_register_kernels: OSError: libfast.so.3",
    ),
    "unknown_hook": (
        HOOK + "@hookimpl\ndef headrace_register_kernel(registry): pass",
        "headrace_register_kernel",
    ),
    "arguments": (
        HOOK + "@hookimpl\ndef headrace_register_kernels(registery): pass",
        "registery",
    ),
    "op": (
        HOOK
        + "from headrace.extend import Floating, Spec, op\n"
        + "@op('Add')\ndef add(x: Floating) -> Spec:\n    'Mine.'\n    return x",
        "op 'Add' is declared twice: at headrace.ops.elementwise",
    ),
    "kernel": (
        HOOK
        + "from headrace.extend import KernelTable\ntable = KernelTable()\n"
        + "@table.plain('Add')\ndef add(xp, x, y): return x\n"
        + "@hookimpl\ndef headrace_register_kernels(registry): registry.add('cpu', table)",
        "the kernel for Add on cpu at plugin_a_kernel:4 would replace that of plugin 'cpu' at",
    ),
    "gradient": (
        HOOK
        + "from headrace.extend import GradientTable\ntable = GradientTable()\n"
        + "@table.add('Exp')\ndef exp(op, gy): return [gy]\n"
        + "@hookimpl\ndef headrace_register_gradients(registry): registry.add(table)",
        "the gradient rule of Exp at plugin_a_gradient:4 would replace that of plugin 'autodiff'",
    ),
    "name": (
        HOOK
        + "@hookimpl\n"
        + "def headrace_register_names(registry): registry.add('gradients', 'plugin_name:x')",
        "the name headrace.gradients at plugin_name:x would replace that of",
    ),
    "device": (
        HOOK
        + "@hookimpl\ndef headrace_register_devices(registry):\n"
        + "    registry.add('cpu', count=lambda: 1, factory=print)",
        "the device kind 'cpu' at",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_plugin_breaks_nothing_else(kind, tmp_path):
    code, reason = BROKEN[kind]
    # Sorted before the official plugins: the order of names must not matter.
    name = f"a_{kind}"
    write_plugin(tmp_path, name, code)
    result, _, listed = output_of(OTHERS, path=tmp_path).partition("\n")
    assert result == "[2.0, 4.0]"
    states = {state["name"]: state for state in json.loads(listed)}
    assert states[name]["state"] == "broken"
    assert reason in states[name]["reason"]
    assert {s["state"] for s in states.values() if s["name"] != name} == {"loaded"}


def test_two_plugins_of_one_name(tmp_path):
    write_plugin(tmp_path, "one", "", entry="same")
    write_plugin(tmp_path, "two", "", entry="same")
    text = output_of(OTHERS, path=tmp_path)
    assert text.startswith("[2.0, 4.0]")
    assert "two plugins are called 'same': plugin_one (plugin-one 1.0) and plugin_two" in text


def test_error_of_who_needs_it_names_the_broken_plugin(site, tmp_path):
    both = shutil.copytree(site, tmp_path / "both")
    (both / "headrace_cube" / "__init__.py").write_text("raise RuntimeError('no licence found')")
    program = """
import headrace as hr
try:
    hr.cube(hr.constant(1.0))
except AttributeError as error:
    print(error)
"""
    text = output_of(program, path=both)
    assert "plugin 'cube' is installed but broken: RuntimeError: no licence found" in text


def test_missing_kernel_names_the_broken_plugin(site, tmp_path):
    both = shutil.copytree(site, tmp_path / "both")
    module = both / "headrace_cube" / "__init__.py"
    module.write_text(module.read_text().replace('registry.add("cpu", KERNELS)', "1 / 0"))
    program = """
import headrace as hr
from headrace_cube import cube
y = cube(hr.constant(2.0))
try:
    hr.Session().run(y)
except hr.errors.NoKernelError as error:
    print(error)
"""
    text = output_of(program, path=both)
    assert "Cube" in text
    assert "headrace_register_kernels: ZeroDivisionError: division by zero" in text
