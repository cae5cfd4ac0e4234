"""Who knows an op's family knows the file of its rule, its kernels and its samples."""

from __future__ import annotations

import pytest

from headrace.graph.schema import OPS
from headrace.plugins.host import host
from headrace.testing.samples import SAMPLES

# A family whose kernels fill more than one file.
KERNEL_FILES: dict[str, set[str]] = {}


def module_of(where: str) -> str:
    return where.partition(":")[0]


def family_of(op: str) -> str:
    return module_of(OPS[op].where).rpartition(".")[2]


@pytest.mark.needs("autodiff")
def test_rules_stand_in_the_file_of_their_family() -> None:
    rules = host().gradients
    places = {op: rules.get(op).__module__ for op in rules}
    ours = {op: place for op, place in places.items() if place.startswith("headrace_")}
    assert ours
    astray = {op: p for op, p in ours.items() if p.rpartition(".")[2] != family_of(op)}
    assert not astray


@pytest.mark.needs("backend-cpu")
def test_kernels_of_the_cpu_stand_in_the_file_of_their_family() -> None:
    from headrace_cpu.kernels import CPU_KERNELS
    from headrace_cpu.kernels.rare import KERNELS

    astray = {}
    for kernel in (*CPU_KERNELS, *KERNELS):
        family = family_of(kernel.op)
        file = module_of(kernel.where).rpartition(".")[2]
        if file not in KERNEL_FILES.get(family, {family}):
            astray[kernel.op] = kernel.where
    assert not astray


def test_samples_stand_in_the_file_of_their_family() -> None:
    astray = {
        row.op: family
        for family, rows in SAMPLES.items()
        for row in rows
        if family_of(row.op) != family
    }
    assert not astray
