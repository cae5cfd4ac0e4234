"""The whole of a plugin checked by one call or one line of configuration, and what then is said."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.children import run_python
from tests.testing.mutants.mutant import SOURCE

# A hundred checks in a process of their own: a machine that does other things takes its time.
pytestmark = [pytest.mark.needs("backend-cpu", "autodiff"), pytest.mark.timeout(120)]

CONFTEST = """
import headrace_mill

def pytest_headrace_rows(plugin):
    return headrace_mill.ROWS if plugin == "mill" else []
"""


def install(folder: Path, source: str) -> dict[str, str]:
    """Put a plugin where Python finds it, as pip would; return what that needs."""
    (folder / "headrace_mill.py").write_text(source)
    about = folder / "headrace_mill-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: headrace-mill\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[headrace]\nmill = headrace_mill\n")
    return {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}


def run(folder: Path, env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return run_python(*words, env=env, cwd=folder, timeout_s=100.0, check=False)


PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "headrace_testing.pytest_plugin")


EXAMPLES = Path(__file__).parents[1] / "plugin_examples"
CHECK_EXAMPLES = """
import sys, tomllib
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from headrace.extend.plugins import PluginHost, use_host
from headrace.testing import check_plugin

entries = list(entry_points(group="headrace"))
there = {entry.name for entry in entries}
for file in sorted(Path(sys.argv[1]).glob("*/pyproject.toml")):
    plugins = tomllib.loads(file.read_text())["project"]["entry-points"]["headrace"]
    sys.path.insert(0, str(file.parent / "src"))
    entries += [EntryPoint(n, m, "headrace") for n, m in plugins.items() if n not in there]
with use_host(PluginHost(sorted(entries, key=lambda entry: entry.name))):
    for name in sys.argv[2:]:
        print(str(check_plugin(name)).splitlines()[0])
"""


def test_the_kit_finds_nothing_in_the_examples_of_the_documentation() -> None:
    names = ("cube", "dice", "ledger", "power", "recorder", "rolling", "signum")
    done = run(EXAMPLES, {}, "-c", CHECK_EXAMPLES, str(EXAMPLES), *names)
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert len(told) == len(names)
    for name, line in zip(names, told, strict=True):
        assert line.startswith(f"plugin {name!r}: "), done.stdout
        assert line.endswith(" 0 failed"), done.stdout


def test_one_word_on_the_command_line_checks_a_plugin(tmp_path: Path) -> None:
    env = install(tmp_path, SOURCE.read_text())
    (tmp_path / "conftest.py").write_text(CONFTEST)
    done = run(
        tmp_path, env, *PYTEST, "--headrace-plugin", "mill", "-k", "MillRows or device", "-vv"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for check in (
        "device-mill-transfers",
        "MillRows-forward",
        "MillRows-0-steps",
        "MillRows-refused",
    ):
        assert check in done.stdout.replace("MillRows-reject", "MillRows")


def test_one_line_of_configuration_checks_a_plugin_and_tells_what_is_wrong(tmp_path: Path) -> None:
    env = install(tmp_path, SOURCE.read_text().replace("gy * 3.0 * x * x", "gy * 3.03 * x * x"))
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\nheadrace_plugins = mill\n")
    done = run(tmp_path, env, *PYTEST, "-k", "MillCube-1-gradient")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "reverse derivative along u is wrong" in done.stdout
    # What is wrong with the plugin, not where the kit found it.
    assert "check_gradient" not in done.stdout


def test_a_plugin_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    done = run(tmp_path, {}, *PYTEST, "--headrace-plugin", "fancy")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "plugin 'fancy' is not installed: no entry point of the group 'headrace'" in done.stdout


@pytest.mark.slow
def test_the_call_tells_what_it_did_and_what_it_could_not(tmp_path: Path) -> None:
    env = install(tmp_path, SOURCE.read_text())
    program = """
import headrace_mill as mill
from headrace.testing import ConformanceError, Sample, Scenario, array, check_plugin

print(check_plugin("mill", ops=["MillRows"]))

def refused(*rows, **options):
    try:
        check_plugin("mill", rows, **options)
    except ConformanceError as error:
        print(error)

refused()
refused(Sample("MillCubes", [array([1.0])], oracle=lambda x: x), ops=[])
short = Scenario("short", mill.counting, [1], ops=["MillCount"])
refused(short, ops=["MillCount"])
other = Scenario("other", lambda: [], [], ops=["MillCount"])
refused(other, ops=["MillCount"])
"""
    done = run(tmp_path, env, "-c", program)
    assert done.returncode == 0, done.stderr
    way_out = (
        "plugin 'mill': no inputs were found that MillCounter takes; give a Sample of it, a "
        "Scenario that names it in ops=, or a reason in without={'MillCounter': ...}"
    )
    for line in (
        "plugin 'mill': ",
        "ops without an oracle, compared with themselves in float64: MillRows",
        way_out,
        "nobody declares MillCubes; plugin 'mill' declares MillBlend, MillCount, MillCounter, Mill",
        "scenario 'short' has 3 steps, and expects 1 results",
        "scenario 'other' adds no ['MillCount']",
    ):
        assert line in done.stdout, done.stdout
