"""``framework.errors_impl``: errors that TensorFlow raises and has no public name for."""

from headrace.errors import SymbolicTensorError

# A tensor is used as a Python value while its graph is built.
OperatorNotAllowedInGraphError = SymbolicTensorError
