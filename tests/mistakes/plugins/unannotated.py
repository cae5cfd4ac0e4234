# Declare an op without saying what it takes.
# refused: building
# got: parameter 'x'
# expected: is not annotated
# fix: annotate it

from headrace.extend.ops import op


@op("Wobble")  # the mistake
def wobble(x):
    """Return x."""
    return x
