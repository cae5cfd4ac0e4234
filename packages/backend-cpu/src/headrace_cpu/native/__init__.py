"""Native code: compiling kernels, keeping them on disk, loading them, threads and memory."""
