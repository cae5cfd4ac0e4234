"""What exists is documented: hooks, environment variables, public names, ops."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import headrace as hr
from headrace.extend.scalars import SCALAR_FUNCTIONS
from headrace.plugins import hookspecs
from headrace.plugins.host import host

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"


def load_tables() -> ModuleType:
    """Return the module that makes the generated tables, without Sphinx."""
    path = ROOT / "docs" / "_ext" / "headrace_tables.py"
    spec = importlib.util.spec_from_file_location("headrace_tables", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tables = load_tables()


def page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def test_every_hook_is_documented_with_its_arguments() -> None:
    text = tables.hook_reference()
    assert "{headrace} hooks" in page("hooks.md")
    names = {name for name in vars(hookspecs) if name.startswith("headrace_")}
    assert names == set(tables.hooks())
    assert "headrace_register_targets(registry: TargetRegistry) -> None" in text
    missing = [name for name, signature in tables.hooks().items() if signature not in text]
    assert not missing


def variables() -> set[str]:
    settings = host().settings.by_package().values()
    return {setting.variable for several in settings for setting in several}


def test_every_environment_variable_is_documented() -> None:
    assert "{headrace} environment" in page("environment.md")
    text = tables.environment()
    missing = [name for name in variables() if f"| `{name}` | " not in text]
    assert not missing
    assert "| headrace-backend-cpu |" in text


def test_every_device_option_is_documented() -> None:
    assert "{headrace} device-options" in page("environment.md")
    text = tables.device_options()
    assert all(f"| `cpu` | `{name}` |" in text for name in ("onednn", "threads", "compile_after"))


def test_pages_name_no_environment_variable_that_does_not_exist() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {
        name
        for path in pages
        for name in re.findall(r"HEADRACE_[A-Z_]+", path.read_text(encoding="utf-8"))
    }
    assert named <= variables()


NAMESPACES = [
    *("bitwise", "debugging", "image", "initializers", "linalg", "lookup", "losses", "math"),
    *("compat", "distributions", "logging", "manip", "nest", "quantization"),
    *("nn", "random", "rnn_cell", "saved_model", "sparse", "strings"),
]


@pytest.mark.parametrize(
    ("module", "file"),
    [
        ("headrace", "headrace.md"),
        *((f"headrace.{name}", f"{name}.md") for name in NAMESPACES),
        ("headrace.extend", "extend.md"),
        pytest.param("headrace_io", "io.md", marks=pytest.mark.needs("io")),
        pytest.param("headrace_io.graph_util", "graph_util.md", marks=pytest.mark.needs("io")),
        pytest.param("headrace_train", "train.md", marks=pytest.mark.needs("train")),
        pytest.param("headrace_train.layers", "layers.md", marks=pytest.mark.needs("train")),
        pytest.param("headrace_train.metrics", "metrics.md", marks=pytest.mark.needs("train")),
        pytest.param("headrace_train.summary", "summary.md", marks=pytest.mark.needs("train")),
        pytest.param("headrace_train.test", "test.md", marks=pytest.mark.needs("train")),
        pytest.param("headrace_serve", "serve.md", marks=pytest.mark.needs("serve")),
        pytest.param("headrace_tensorflow", "tensorflow.md", marks=pytest.mark.needs("tensorflow")),
        pytest.param("headrace_data", "data.md", marks=pytest.mark.needs("data")),
        pytest.param("headrace_mpi", "dist.md", marks=pytest.mark.needs("dist-mpi")),
        pytest.param("headrace_autodiff", "gradients.md", marks=pytest.mark.needs("autodiff")),
    ],
)
def test_every_public_name_is_documented(module: str, file: str) -> None:
    found = importlib.import_module(module)
    names = getattr(found, "__all__", None) or [
        name for name in vars(found) if not name.startswith("_")
    ]
    text = page(file)
    generated = tables.public(module) if f"{{headrace}} functions {module}\n" in text else {}
    missing = [n for n in names if n not in generated and not re.search(rf"\b{n}\b", text)]
    assert not missing


def test_every_family_of_ops_has_a_page_that_is_listed() -> None:
    index = page("ops/index.md")
    for family in tables.families():
        assert f"{{headrace}} ops {family}\n" in page(f"ops/{family}.md")
        assert f"\n{family}\n" in index


def test_ops_are_found_under_the_names_that_their_pages_state() -> None:
    lost = []
    for schema in tables.declared():
        found: object = hr
        for part in schema.public.split(".") if schema.public else []:
            found = getattr(found, part, None)
        if found is None:
            lost.append(f"{schema.type}: hr.{schema.public}")
    assert not lost


def test_the_page_of_an_op_says_what_it_takes_and_where_it_runs() -> None:
    text = tables.one_op(next(s for s in tables.declared() if s.type == "MatMul"))
    assert "`hr.matmul(a, b, transpose_a=False, transpose_b=False, name=None)`" in text
    assert "* inputs: `a`: numeric, `b`: numeric" in text
    assert "* attributes: `transpose_a=False`, `transpose_b=False`" in text
    assert "* kernels: " in text


def test_every_scalar_function_is_documented() -> None:
    assert "{headrace} scalars" in page("scalars.md")
    text = tables.scalar_functions()
    assert text.count("\n") == len(SCALAR_FUNCTIONS) + 1
    assert "| `s.where(condition, x, y)` | numbers or truth values |" in text
    assert "| `s.trunc(x)` | floats | the dtype of its last argument | `xp.trunc` |" in text
