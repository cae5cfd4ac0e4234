"""The kernels of the package's ops."""

from headrace_data.kernels.pipelines import KERNELS as KERNELS
