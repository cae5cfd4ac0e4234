"""Tests of programs, as ``hr.test``: a test case, and checks of gradients."""

from __future__ import annotations

from headrace_train.test.benchmark import Benchmark as Benchmark
from headrace_train.test.benchmark import benchmark_config as benchmark_config
from headrace_train.test.case import TestCase as TestCase
from headrace_train.test.check import GradientCheckError as GradientCheckError
from headrace_train.test.check import GradientReport as GradientReport
from headrace_train.test.check import check_gradient as check_gradient
from headrace_train.test.environment import get_temp_dir as get_temp_dir
from headrace_train.test.environment import gpu_device_name as gpu_device_name
from headrace_train.test.environment import is_built_with_cuda as is_built_with_cuda
from headrace_train.test.environment import is_built_with_gpu_support as is_built_with_gpu_support
from headrace_train.test.environment import is_built_with_rocm as is_built_with_rocm
from headrace_train.test.environment import is_gpu_available as is_gpu_available
from headrace_train.test.environment import main as main
from headrace_train.test.graphs import assert_equal_graph_def as assert_equal_graph_def
from headrace_train.test.jacobian import compute_gradient as compute_gradient
from headrace_train.test.jacobian import compute_gradient_error as compute_gradient_error
from headrace_train.test.stubs import StubOutForTesting as StubOutForTesting

__all__ = [
    "Benchmark",
    "GradientCheckError",
    "GradientReport",
    "StubOutForTesting",
    "TestCase",
    "assert_equal_graph_def",
    "benchmark_config",
    "check_gradient",
    "compute_gradient",
    "compute_gradient_error",
    "get_temp_dir",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_built_with_rocm",
    "is_gpu_available",
    "main",
]
