"""T1: the Philox kernel, run on the host, gives the bits of ``numpy.random.Philox``."""

from __future__ import annotations

import ctypes
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

TOP = (1 << 64) - 1
MAIN = """
extern "C" void run(unsigned blocks, unsigned threads, word *out, word count, const word *numbers) {
    launch(blocks, threads, philox, out, count, numbers[0], numbers[1], numbers[2], numbers[3],
           numbers[4], numbers[5]);
}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory, build_library):
    folder = tmp_path_factory.mktemp("philox")
    kernel = files("headrace_cuda.kernels").joinpath("philox.cu").read_text()
    shim = Path(__file__).parent / "cuda_shim.hpp"
    source = folder / "philox.cpp"
    source.write_text(f'#include "{shim}"\n{kernel}\n{MAIN}')
    flags = ("-fsanitize=undefined", "-fno-sanitize-recover", "-Wno-unknown-pragmas")
    library = ctypes.CDLL(str(build_library(source, folder / "philox.so", *flags)))

    def call(key, counter, count, blocks=2, threads=8):
        out = np.zeros(count + 8, np.uint64)
        words = [*key, *(counter >> shift & TOP for shift in (0, 64, 128, 192))]
        numbers = np.array(words, np.uint64)
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (out, numbers)]
        library.run(blocks, threads, pointers[0], ctypes.c_uint64(count), pointers[1])
        assert not out[count:].any(), "wrote beyond the end"
        return out[:count]

    return call


def expected(key, counter, count):
    bits = np.random.Philox(key=key[0] | key[1] << 64, counter=counter)
    return bits.random_raw(count)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 63, 64, 65, 1000])
def test_any_count(run, count):
    np.testing.assert_array_equal(run((1, 2), 3, count), expected((1, 2), 3, count))


@pytest.mark.parametrize("words", [1, 2, 3, 4])
def test_the_counter_carries_into_every_word(run, words):
    counter = (1 << 64 * words) - 3
    np.testing.assert_array_equal(run((5, 6), counter, 40), expected((5, 6), counter, 40))


@given(st.integers(0, TOP), st.integers(0, TOP), st.integers(0, (1 << 256) - 1))
@settings(max_examples=60, deadline=None)
def test_any_key_and_counter(run, low, high, counter):
    np.testing.assert_array_equal(run((low, high), counter, 17), expected((low, high), counter, 17))


def test_the_launch_does_not_matter(run):
    words = [run((7, 8), 9, 500, blocks, threads) for blocks, threads in [(1, 1), (3, 7), (40, 4)]]
    np.testing.assert_array_equal(words[0], words[1])
    np.testing.assert_array_equal(words[0], words[2])
