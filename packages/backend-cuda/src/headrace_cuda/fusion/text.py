"""The text of values in CUDA C++: types, numbers and functions."""

from __future__ import annotations

from headrace import Operation
from headrace.extend.scalars import expression_of
from headrace_cpu.for_backends import FLOATS, Value

TYPES = {
    "b8": "bool",
    "u8": "uint8",
    "i32": "int",
    "i64": "int64",
    "f32": "float",
    "f64": "double",
}
# What folds two numbers, by the name of a reduction: a type of the prelude.
FOLDS = {
    "total": "Total",
    "product": "Product",
    "largest": "Largest",
    "smallest": "Smallest",
    "both": "Both",
    "either": "Either",
}
_INFIX = {
    "divide": "/", "quotient": "/", "less": "<", "less_equal": "<=", "greater": ">",
    "greater_equal": ">=", "equal": "==", "not_equal": "!=", "logical_and": "&&",
    "logical_or": "||", "logical_xor": "!=", "bitwise_and": "&", "bitwise_or": "|",
    "bitwise_xor": "^",
}  # fmt: skip
_PREFIX = {"logical_not": "!", "invert": "~"}
# Functions of the prelude, which know their types.
_OWN = frozenset(
    {
        "add", "subtract", "multiply", "negative", "abs", "maximum", "minimum", "left_shift",
        "right_shift", "sigmoid",
    }
)  # fmt: skip
# Functions of CUDA's library, with an f at the end for float32.
_LIBRARY = {
    "floor": "floor", "ceil": "ceil", "rint": "rint", "trunc": "trunc", "sqrt": "sqrt",
    "exp": "exp", "expm1": "expm1", "log": "log", "log1p": "log1p", "pow": "pow", "erf": "erf",
    "erfc": "erfc", "lgamma": "lgamma", "sin": "sin", "cos": "cos", "tan": "tan", "asin": "asin",
    "acos": "acos", "atan": "atan", "atan2": "atan2", "sinh": "sinh", "cosh": "cosh",
    "tanh": "tanh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh",
}  # fmt: skip
_WORDS = {"where", "cast"}
_WRITTEN = {*_INFIX, *_PREFIX, *_OWN, *_LIBRARY, *_WORDS}


def is_written(op: Operation) -> bool:
    """Whether the functions of an operation's expression are there, if it states one."""
    expression = expression_of(op)
    if expression is None:
        return True
    return all(not step.args or step.function in _WRITTEN for step in expression.steps)


def literal(value: Value) -> str:
    """Return the text of a constant."""
    number = value.constant.item()
    kind = TYPES[value.code]
    if value.code == "b8":
        return "true" if number else "false"
    if value.code not in FLOATS:
        # The least number of 64 bits is not the negative of one.
        least = -(1 << 63)
        return f"({kind})(-{2**63 - 1}LL - 1)" if number == least else f"({kind}){number}LL"
    if number != number:
        return f"hr_nan<{kind}>()"
    if number in (float("inf"), -float("inf")):
        return f"{'-' if number < 0 else ''}hr_infinity<{kind}>()"
    return f"({kind}){float(number).hex()}"


def identity(name: str, code: str) -> str:
    """Return where a fold begins."""
    kind = TYPES[code]
    plain = {"total": "0", "product": "1", "both": "true", "either": "false"}
    if name in plain:
        return f"({kind}){plain[name]}"
    sign = "-" if name == "largest" else ""
    if code in FLOATS:
        return f"{sign}hr_infinity<{kind}>()"
    most = {"u8": 255, "i32": 2**31 - 1, "i64": 2**63 - 1}[code]
    if not sign:
        return f"({kind}){most}LL"
    return f"({kind})0" if code == "u8" else f"({kind})(-{most}LL - 1)"


def mapped(value: Value, args: list[str]) -> str:
    """Return the expression of a function of values.

    Raises:
        KeyError: if there is no such function.
    """
    name, kind = value.name, TYPES[value.code]
    if name in _OWN:
        return f"hr_{name}({', '.join(args)})"
    if name in _INFIX:
        return f"({kind})({args[0]} {_INFIX[name]} {args[1]})"
    if name in _PREFIX:
        return f"({kind})({_PREFIX[name]}{args[0]})"
    if name == "where":
        return f"({args[0]} ? {args[1]} : {args[2]})"
    if name.startswith("to_"):
        return f"({TYPES[name[3:]]}){args[0]}"
    suffix = "f" if value.code == "f32" else ""
    return f"{_LIBRARY[name]}{suffix}({', '.join(args)})"
