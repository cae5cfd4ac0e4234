"""Faults of gradients and of rewrite rules."""

from __future__ import annotations

from tests.testing.mutants.mutant import BLEND, CUBE, REWRITE, RULE, SHOWN, SLOPE, Mutant

DERIVATION_MUTANTS = [
    # gradients
    Mutant(
        "the gradient is 1 % off",
        SLOPE,
        "    return [gy * 3.03 * x * x]",
        "reverse derivative along u is wrong",
        CUBE,
    ),
    Mutant(
        "the gradient is 1 % off, and no rows are given",
        SLOPE,
        "    return [gy * 3.03 * x * x]",
        "reverse derivative along u is wrong",
        CUBE,
        rows=False,
    ),
    Mutant(
        "the gradient of the second input is that of the first",
        "    return [sum_to_shape(by_x, shape_of(x)), sum_to_shape(by_y, shape_of(y))]",
        "    return [sum_to_shape(by_x, shape_of(x)), sum_to_shape(by_x, shape_of(y))]",
        "reverse derivative along u is wrong",
        BLEND,
    ),
    Mutant(
        "the gradient is not summed over what was broadcast",
        "    return [sum_to_shape(by_x, shape_of(x)), sum_to_shape(by_y, shape_of(y))]",
        "    return [by_x, by_y]",
        r"returns shape \[3, 4\] for input \d of shape",
        BLEND,
    ),
    Mutant(
        "the second gradient is wrong",
        SLOPE,
        "    return [gy * 3.0 * x * hr.stop_gradient(x)]",
        "second order derivative along u is wrong",
        CUBE,
    ),
    Mutant(
        "the gradient does not depend on what comes in",
        SLOPE,
        "    return [3.0 * x * x]",
        "derivative along u is wrong",
        CUBE,
    ),
    Mutant(
        "the rule returns too few gradients",
        "    return [sum_to_shape(by_x, shape_of(x)), sum_to_shape(by_y, shape_of(y))]",
        "    return [sum_to_shape(by_x, shape_of(x))]",
        "returns 1 gradients for 2 inputs|1 gradient",
        BLEND,
    ),
    Mutant(
        "the rule fails",
        SLOPE,
        "    return [gy * 3.0 * x * x * node.attrs['power']]",
        r"raises KeyError: 'power'",
        CUBE,
    ),
    Mutant(
        "the gradient is right in one dtype only",
        SLOPE,
        "    return [gy * (3.0 if x.dtype == hr.float64 else 2.0) * x * x]",
        "is not the one for float64",
        CUBE,
    ),
    Mutant(
        "the gradient has another dtype",
        SLOPE,
        "    return [hr.cast(gy * 3.0 * x * x, hr.float64)]",
        r"returns float64 for input 0, which is float\d+",
        CUBE,
    ),
    Mutant(
        "there is no rule, and no reason why",
        "    registry.add(GRADIENTS)",
        "    pass",
        "there is no gradient",
        CUBE,
    ),
    # rewrite rules
    Mutant(
        "a rewrite rule is not the one that its row shows",
        RULE,
        '    return replacement.add("MillCube", negated.inputs[0])',
        r"rule 'mill-cube-of-negated'[^\n]*: expected Neg\(MillCube\(x\)\), got MillCube\(x\)",
        REWRITE,
    ),
    Mutant(
        "a rewrite rule is wrong for all but 0, and its row believes it",
        RULE,
        '    return replacement.add("MillCube", negated.inputs[0])',
        r"rule 'mill-cube-of-negated'[^\n]*: the result changes at",
        REWRITE,
        also=((SHOWN, SHOWN.replace("Neg(MillCube(x))", "MillCube(x)")),),
    ),
    Mutant(
        "a rewrite rule is wrong for the signs of zeros, and its row believes it",
        RULE,
        '    made = replacement.add("MillCube", negated.inputs[0])\n'
        "    zero = replacement.constant(np.zeros(()), made.dtype)\n"
        '    return replacement.add("Sub", zero, made)',
        r"rule 'mill-cube-of-negated'[^\n]*: the result changes at",
        REWRITE,
        also=((SHOWN, SHOWN.replace("Neg(MillCube(x))", "Sub(0.0, MillCube(x))")),),
    ),
    Mutant(
        "a rewrite rule is wrong for NaN and infinities, and its row believes it",
        RULE,
        '    made = replacement.add("MillCube", negated.inputs[0])\n'
        '    return replacement.add("Sub", replacement.add("Sub", made, made), made)',
        r"rule 'mill-cube-of-negated'[^\n]*: the result changes at",
        REWRITE,
        also=(
            (
                SHOWN,
                SHOWN.replace(
                    "Neg(MillCube(x))", "Sub(Sub(MillCube(x), MillCube(x)), MillCube(x))"
                ),
            ),
        ),
    ),
    Mutant(
        "a rewrite rule never acts",
        "    if negated is None:",
        "    if negated is not None:",
        r"rule 'mill-cube-of-negated'[^\n]*: it does not apply",
        REWRITE,
    ),
    Mutant(
        "a rewrite rule acts where it should not",
        '    negated = inner(node.inputs[0], "Neg")\n',
        '    negated = inner(node.inputs[0], "Neg") or inner(node.inputs[0], "Abs")\n',
        r"rule 'mill-cube-of-negated'[^\n]*: the result changes at",
        REWRITE,
        also=(
            ('exactly", after=["Neg"])', 'exactly")'),
            (SHOWN, SHOWN.replace("(-x)", "(hr.abs(x))")),
        ),
    ),
    Mutant(
        "a rewrite rule has no row",
        SHOWN,
        "",
        "no row shows what the rewrite rule 'mill-cube-of-negated' does",
        REWRITE,
    ),
]
