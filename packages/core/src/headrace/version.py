"""The version of the package."""

__version__ = "0.1.0"

VERSION = __version__
# What programs written for TensorFlow ask about its build, as it would answer for Python alone.
GIT_VERSION = "unknown"
COMPILER_VERSION = "none"
CXX11_ABI_FLAG = 0
MONOLITHIC_BUILD = 0
# The versions of TensorFlow's graphs that are written and read.
GRAPH_DEF_VERSION = 134
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0
