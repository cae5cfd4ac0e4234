"""Calls of composites that are right, which the fuzzer mutates; ops have their samples."""

from headrace_testing.fuzz.seeds import flat_a_to_l, flat_m_to_z, neural, spaces, windows
from headrace_testing.fuzz.seeds.rows import Seed

SEEDS: dict[str, list[Seed]] = {}
for _module in (flat_a_to_l, flat_m_to_z, neural, spaces, windows):
    for _row in _module.ROWS:
        SEEDS.setdefault(_row.name, []).append(_row)
