"""How many modules a first step imports: what few programs need is imported by those that do.

The numbers are what there is, by the folder of a package. A step that imports more makes every
first step wait for it: import the module where it is used (``# lazy: why``). Where all programs of
the kind need it, raise the number; where a number has become too large, lower it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest

pytestmark = pytest.mark.needs("core", "autodiff", "backend-cpu", "train")

# Each runs one step, after that of the initializer where there are variables.
PROGRAMS = {
    "nothing": "done = hr.no_op()",
    "softmax": """
x, y = hr.placeholder("float32", [8, 6]), hr.placeholder("int32", [8])
w, b = hr.Variable(np.zeros((6, 4), "float32")), hr.Variable(np.zeros(4, "float32"))
logits = hr.matmul(x, w) + b
losses = hr.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
done = hr.train.GradientDescentOptimizer(0.5).minimize(hr.reduce_mean(losses))
feeds = {x: np.zeros((8, 6), "float32"), y: np.zeros(8, "int32")}
""",
    "layers": """
x, y = hr.placeholder("float32", [8, 6]), hr.placeholder("int32", [8])
logits = hr.layers.dense(hr.layers.dense(x, 5, hr.nn.relu), 4)
losses = hr.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
done = hr.train.AdamOptimizer().minimize(hr.reduce_mean(losses))
feeds = {x: np.zeros((8, 6), "float32"), y: np.zeros(8, "int32")}
""",
}
RUN = """
import json, sys
import numpy as np
import headrace as hr
feeds = {{}}
{program}
built = set(sys.modules)
with hr.Session() as session:
    session.run(hr.global_variables_initializer())
    session.run(done, feeds)
    print(json.dumps([sorted(set(sys.modules) - built), sorted(sys.modules)]))
"""
# By folder, for each program: what its steps import once the graph is built.
COUNTS = {
    "nothing": {
        "headrace": 12,
        "headrace.extend": 10,
        "headrace.partition": 4,
        "headrace.passes": 39,
        "headrace.placement": 6,
        "headrace.plugins": 23,
        "headrace.runtime": 68,
        "headrace.scalars": 1,
        "headrace.session": 16,
        "headrace_cpu": 13,
        "headrace_cpu.fusion": 24,
        "headrace_cpu.kernels": 47,
        "headrace_cpu.matmul": 13,
        "headrace_cpu.native": 13,
        "headrace_cpu.onednn": 8,
        "headrace_cpu.program": 21,
        "headrace_cpu.native_loops": 3,
    },
    "softmax": {
        "headrace": 6,
        "headrace.extend": 7,
        "headrace.partition": 4,
        "headrace.passes": 37,
        "headrace.placement": 6,
        "headrace.plugins": 1,
        "headrace.runtime": 58,
        "headrace.session": 16,
        "headrace_cpu": 12,
        "headrace_cpu.fusion": 24,
        "headrace_cpu.kernels": 47,
        "headrace_cpu.matmul": 13,
        "headrace_cpu.native": 13,
        "headrace_cpu.onednn": 8,
        "headrace_cpu.program": 21,
        "headrace_cpu.native_loops": 3,
    },
    "layers": {
        "headrace": 6,
        "headrace.extend": 7,
        "headrace.partition": 4,
        "headrace.passes": 37,
        "headrace.placement": 6,
        "headrace.plugins": 1,
        "headrace.runtime": 58,
        "headrace.session": 16,
        "headrace_cpu": 12,
        "headrace_cpu.fusion": 24,
        "headrace_cpu.kernels": 47,
        "headrace_cpu.matmul": 13,
        "headrace_cpu.native": 13,
        "headrace_cpu.onednn": 8,
        "headrace_cpu.program": 21,
        "headrace_cpu.native_loops": 3,
    },
}
# What no such step needs, of the standard library and of others.
NEVER = [
    *("email", "importlib.metadata", "importlib.resources", "subprocess", "zipfile"),
    *("llvmlite", "h5py", "google.protobuf", "PIL", "mpi4py", "cupy"),
    *(
        "headrace.session.config_proto",
        "headrace.runtime.profiling.trace",
        "headrace.session.explain",
    ),
]


@pytest.fixture(scope="module", params=PROGRAMS)
def run(request: pytest.FixtureRequest) -> tuple[str, list[str], list[str]]:
    """A program's name, what its steps imported, and all that is imported then."""
    program = RUN.format(program=PROGRAMS[request.param])
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stderr
    return (request.param, *json.loads(done.stdout))


def folder(module: str) -> str:
    """Return the folder of a package that a module counts for, "" for what is counted nowhere."""
    package, *rest = module.split(".")
    if package not in ("headrace", "headrace_cpu") or not rest:
        return ""
    return f"{package}.{rest[0]}" if len(rest) > 1 else package


def test_a_first_step_imports_no_more_modules(run: tuple[str, list[str], list[str]]) -> None:
    name, imported, _ = run
    found = Counter(filter(None, map(folder, imported)))
    wrong = [
        f"{where}: {count} modules, at most {COUNTS[name].get(where, 0)}: "
        + ", ".join(m for m in imported if folder(m) == where)
        for where, count in found.items()
        if count > COUNTS[name].get(where, 0)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_numbers_are_what_there_is(run: tuple[str, list[str], list[str]]) -> None:
    name, imported, _ = run
    found = Counter(filter(None, map(folder, imported)))
    assert {where: found[where] for where in COUNTS[name]} == COUNTS[name]


def test_a_first_step_imports_nothing_that_few_programs_need(
    run: tuple[str, list[str], list[str]],
) -> None:
    assert [module for module in NEVER if module in run[2]] == []
