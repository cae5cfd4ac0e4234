"""Declarations of the package's ops."""

from headrace_io.ops import decoding as decoding
from headrace_io.ops import files as files
from headrace_io.ops import images as images
from headrace_io.ops import messages as messages
from headrace_io.ops import parsing as parsing
from headrace_io.ops import readers as readers
