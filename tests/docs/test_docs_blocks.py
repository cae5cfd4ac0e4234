"""The code on the README's and the documentation's pages runs and prints what they say."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.children import run_python

ROOT = Path(__file__).resolve().parents[2]
RUNNER = Path(__file__).with_name("markdown_blocks.py")
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if "\n```python\n" in page.read_text(encoding="utf-8") and "_build" not in page.parts
]


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run_python(*arguments, env={"PYTHONWARNINGS": "error"}, cwd=cwd, check=False)


@pytest.mark.needs("autodiff", "backend-cpu", "train")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_of_a_page_run_in_order(page: Path, tmp_path: Path) -> None:
    result = run(str(RUNNER), str(page), cwd=tmp_path)
    assert result.returncode == 0, result.stderr


CHECK = """
import sys
from pathlib import Path
from types import SimpleNamespace

from headrace.plugins import host as host_module
from headrace.extend import hookimpl
from headrace.testing import SkipCheck, cases
from markdown_blocks import run_page

page = run_page(Path(sys.argv[1]))


class Plugin:
    @hookimpl
    def headrace_register_kernels(self, registry):
        registry.add("cpu", page["KERNELS"])

    @hookimpl
    def headrace_register_gradients(self, registry):
        registry.add(page["GRADIENTS"])


entry = SimpleNamespace(name="page", value="page", dist=None, load=Plugin)
host_module._HOST = host_module.PluginHost([*host_module.PluginHost()._collection.found(), entry])
made = cases(page["ROWS"])
for case in made:
    try:
        case.run()
    except SkipCheck as reason:
        print("skipped", case.name, reason)
print(len(made), "checks")
"""


@pytest.mark.needs("autodiff", "backend-cpu")
def test_op_of_the_page_on_plugins_passes_the_conformance_kit() -> None:
    page = ROOT / "docs" / "how-to" / "write-a-plugin.md"
    result = run("-c", CHECK, str(page), cwd=RUNNER.parent)
    assert result.returncode == 0, result.stderr
    checks = int(result.stdout.split()[-2])
    assert checks > 10


def test_pages_with_code_are_found() -> None:
    names = {page.name for page in PAGES}
    assert {
        "README.md",
        "index.md",
        "coming-from.md",
        "many-processes.md",
        "tour.md",
        "add-an-op.md",
        "write-a-plugin.md",
    } <= names


def test_a_block_that_prints_something_else_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n", encoding="utf-8")
    result = run(str(RUNNER), str(page), cwd=tmp_path)
    assert result.returncode != 0
    assert "page.md:2 prints something else" in result.stderr


@pytest.mark.needs("autodiff", "backend-cpu", "dist-mpi", "train", "mpi")
@pytest.mark.parametrize(
    ("example", "ranks", "prints"),
    [
        ("two_tasks.py", 2, "the counter on the parameter server stands at 3"),
        ("asynchronous.py", 3, "200 steps, accuracy 0.9"),
        pytest.param(
            "sharded_table.py",
            4,
            "shards on /job:ps/task:1 and /job:ps/task:0; mean error ",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_examples_of_clusters_run_with_and_without_mpirun(
    mpirun, example: str, ranks: int, prints: str, tmp_path: Path
) -> None:
    path = str(ROOT / "examples" / example)
    job = mpirun(ranks, path)
    assert job.returncode == 0, job.stderr
    assert prints in job.stdout

    alone = run(path, cwd=tmp_path)
    assert alone.returncode == 0, alone.stderr
    assert prints.replace("200", "100") in alone.stdout
