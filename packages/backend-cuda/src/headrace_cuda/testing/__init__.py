"""Testing array-module kernels against CuPy's interface on a machine without a GPU."""

from headrace_cuda.testing.device import FakeCudaDevice as FakeCudaDevice
from headrace_cuda.testing.module import CALLS as CALLS
from headrace_cuda.testing.module import FakeArray as FakeArray
from headrace_cuda.testing.module import FakeCupy as FakeCupy
from headrace_cuda.testing.module import fake_cupy as fake_cupy
