"""Words of kernels' blocks: known when an instruction is bound, or told in each step."""

from __future__ import annotations

import ctypes
import gc

import numpy as np

import headrace as hr
from headrace_cpu.native.threads import open_mp
from headrace_cpu.program.block import Block, bound


class Places:
    """Addresses of some tensors; those of others come in each step."""

    def __init__(self, known):
        self.known = known

    def of(self, tensor):
        return self.known.get(tensor)

    def scratch(self):
        return 5000


def tensors(count):
    return [hr.placeholder("float32", [3]) for _ in range(count)]


def test_words_are_addresses_with_offsets():
    x, y = tensors(2)
    at = Places({x: 1000, y: 2000})
    block = Block(5, at)
    block.bind(x, 0)
    block.bind(y, 1, 8)
    block.bind(x, 2, 16)
    block.bind_scratch(3)
    block.bind_scratch(4, 64)
    assert block.words.tolist() == [1000, 2008, 1016, 5000, 5064]
    assert not bound(lambda: None, [block], [x, y], at).point


def test_addresses_that_come_in_each_step_reach_all_words_of_all_blocks():
    x, y, unread = tensors(3)
    at = Places({y: 2000})
    one, other = Block(3, at), Block(2, at)
    one.bind(x, 0)
    one.bind(y, 1)
    one.bind(x, 2, 4)
    other.bind(x, 1)
    point = bound(lambda: None, [one, other], [x, y, unread], at).point
    assert set(point) == {x, unread}
    for place in (100, 300):
        point[x](place)
        point[unread](7)
        assert one.words.tolist() == [place, 2000, place + 4]
        assert other.words.tolist() == [0, place]


def test_the_team_is_openmps_functions():
    block = Block(3, Places({}))
    block.bind_team(2, 1, 0)
    pool = open_mp()
    names = ("GOMP_barrier", "omp_get_num_threads", "omp_get_thread_num")
    assert block.words.tolist() == [pool.symbols[n] if pool else 0 for n in names]


def test_a_kernel_runs_on_its_block_for_as_long_as_it_is_called():
    seen = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def kernel(place):
        seen.append(np.ctypeslib.as_array((ctypes.c_int64 * 2).from_address(place)).tolist())

    block = Block(2, Places({}))
    block.bind_scratch(1)
    run = block.launch(ctypes.cast(kernel, ctypes.c_void_p).value, 1)
    del block
    gc.collect()
    run()
    assert seen == [[0, 5000]]
