# Declare an op that is there already.
# refused: building
# got: op 'MatMul' is declared twice
# expected: the first has the name
# fix: declare the other one under another

from headrace.extend.ops import Spec, op


@op("MatMul")  # the mistake
def matmul(x: Spec) -> Spec:
    """Return the product."""
    return x
