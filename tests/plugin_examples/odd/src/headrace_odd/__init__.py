"""A rewrite rule: the sign of what goes into an odd function comes out of it."""

from headrace.extend import hookimpl
from headrace.extend.passes import RuleTable, inner

RULES = RuleTable()

# Ops with f(-x) = -f(x), whose kernels compute it so to the last bit.
ODD = ("Sin", "Tan", "Asin", "Atan", "Tanh")


# A rule looks at a node of one of these ops while the step's graph is simplified, and returns the
# value to take for its output, or None to leave it. ``after`` lets it be tried only where an input
# comes from one of the ops named there. The reason must hold for every value, NaN and both zeros
# included.
@RULES.add("odd-function", *ODD, after=("Neg",), reason="f(-x) is -f(x), also for -0")
def odd_function(node, replacement):
    # ``inner`` is the node behind a value, unless something else has to wait for that node.
    negated = inner(node.inputs[0], "Neg")
    if negated is None:
        return None
    # Outside, the sign may meet another one, or a sum that can subtract instead.
    return replacement.add("Neg", replacement.again(negated.inputs))


@hookimpl
def headrace_register_passes(registry):
    registry.add_rules(RULES)
