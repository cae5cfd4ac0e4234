"""A few cells of the matrix of faults; ``nox -s cluster_faults`` runs all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from .cells import FAULTS, PHASES, ROLES, Cell, cells, run_cell

SHORT = [
    # A worker dies between the admission of its gradient and its arrival.
    Cell("admission", "worker", "SIGKILL"),
]
SLOW = [
    Cell("register", "worker", "exception"),
    Cell("transfer", "worker", "exit(3)"),
    Cell("kernel", "worker", "SIGSTOP"),
    Cell("save", "ps", "SIGKILL"),
    Cell("kernel", "chief", "exit(0)"),
    Cell("start", "worker", "SIGKILL"),
]


def test_the_matrix_is_whole() -> None:
    all_cells = list(cells())
    assert len(set(all_cells)) == len(PHASES) * len(ROLES) * len(FAULTS) == 144
    assert all(cell.codes for cell in all_cells)


@pytest.mark.needs("mpi", "backend-cpu", "autodiff", "io", "train")
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "cell", [*SHORT, *(pytest.param(cell, marks=pytest.mark.slow) for cell in SLOW)], ids=str
)
def test_a_fault_ends_as_promised(cell: Cell, tmp_path: Path) -> None:
    assert run_cell(cell, tmp_path).wrong == ""
