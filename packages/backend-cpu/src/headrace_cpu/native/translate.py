"""From the Python of a generated kernel to LLVM's assembly.

The sources of kernels use little of Python: assignments, loops over ``range`` or over ``vectors``,
which is a range that becomes vectors and is not unrolled, each also as ``full_``, with as many
steps in a vector as float32 fills, as ``folded_``, with the last steps in a vector with gaps, and
as ``even_``, one vector at a time, ``while``, conditions, ``continue``, arithmetic, comparisons,
numbers, and calls of the functions in ``instructions`` and of the kernel's vocabulary. What they
mean is what Python would mean by them, if values of a dtype stayed of that dtype and whole numbers
had 64 bits, with two exceptions: ``and`` and ``or`` compute both sides, and nothing is converted
unless the source says so, but that a whole number in the source takes the dtype of what it meets.

Translating takes milliseconds, as all dtypes are known from the beginning.
"""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from headrace_cpu.native.assembly import vector_bytes
from headrace_cpu.native.instructions import (
    FLOATS,
    TYPES,
    UNSIGNED,
    Held,
    Machine,
    Maker,
    instruction,
)
from headrace_cpu.native.source import Vocabulary

_CODES = {
    "bool_": "b8", "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16", "int32": "i32",
    "uint32": "u32", "int64": "i64", "uint64": "u64", "float32": "f32", "float64": "f64",
}  # fmt: skip
_COMPARE = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_INTEGER = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.LShift: "shl", ast.BitAnd: "and_",
    ast.BitOr: "or_", ast.BitXor: "xor",
}  # fmt: skip
# Stands for a node of metadata inside it.
_ITSELF = "headrace.itself"
_FLOAT = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}


def translate(text: str, name: str, vocabulary: Vocabulary) -> str:
    """Translate a kernel.

    Args:
        text: Its source: constants, ``C = np.float32(0.5)``, functions of the vocabulary,
            ``exp = FUNCTIONS[key]``, and then ``def name(block)``.
        name: The name of its function.
        vocabulary: The functions that it calls besides those of all kernels.

    Returns:
        A module of LLVM's assembly with ``void @name(i64 %block)``.

    Raises:
        SyntaxError: if the source uses more of Python than kernels do, or mixes dtypes.
    """
    module = ir.Module(name="kernel")
    translator = _Translator(module, vocabulary.functions())
    for statement in _parsed(text).body:
        if isinstance(statement, ast.Assign):
            translator.constant(statement)
        elif isinstance(statement, ast.FunctionDef):
            translator.function(statement, name)
        else:
            raise _unknown(statement)
    return _named_loops(str(module)).replace(f'@"{name}"(', f"@{name}(")


# Releases of Python 3.11 count how deep all threads are that parse something as one (python/cpython
# issue 106905), and fail where that is another depth at the end.
_PARSING = threading.Lock()
_ATTEMPTS = 5


def _parsed(text: str) -> ast.Module:
    for _ in range(_ATTEMPTS):
        try:
            with _PARSING:
                return ast.parse(text)
        except SystemError:
            # A thread of the program's parsed, too.
            continue
    return ast.parse(text)


# What LLVM is told about loops: not to unroll one before it makes vectors of its steps, and how
# many steps a vector has where it would count the largest elements that the loop reads; to put the
# last steps into a vector, too; and to take one vector at a time, so that none but those are left.
_KEPT = ("llvm.loop.unroll.disable", None)
_FULL = ("llvm.loop.vectorize.width", vector_bytes() // 4)
_FOLDED = ("llvm.loop.vectorize.predicate.enable", 1)
_EVEN = ("llvm.loop.interleave.count", 1)
_LOOPS: Mapping[str, Sequence[tuple[str, int | None]]] = {
    f"{named}{full}{kind}": (*kept, *which, *width)
    for named, which in (("", ()), ("folded_", (_FOLDED,)), ("even_", (_EVEN,)))
    for full, width in (("", ()), ("full_", (_FULL,)))
    for kind, kept in (("range", ()), ("vectors", (_KEPT,)))
}


def _named_loops(text: str) -> str:
    """Return a module whose loops' metadata refers to itself."""
    written = rf'^(!\d+) = !{{ !"{_ITSELF}\.\d+"'
    return re.sub(written, r"\1 = distinct !{ \1", text, flags=re.MULTILINE)


def _unknown(node: ast.AST) -> SyntaxError:
    return SyntaxError(f"kernels have no {ast.unparse(node)!r}")


class _Translator:
    """Translates one module.

    Variables are memory of the function's frame, which LLVM turns into registers. A variable that
    is assigned values of two dtypes is two variables.
    """

    def __init__(self, module: Any, vocabulary: Mapping[Any, Maker]) -> None:
        self.module = module
        self.vocabulary = vocabulary
        self.constants: dict[str, Held] = {}
        self.functions: dict[str, Maker] = {}
        self.places: dict[str, tuple[str, Any]] = {}
        # Where ``continue`` goes to, for each of the loops around.
        self.nexts: list[Any] = []
        self.marked_loops = 0
        self.builder: Any = None
        self.machine: Machine

    # -- what comes before the function

    def constant(self, statement: ast.Assign) -> None:
        """Note a constant, or the name of a function of the vocabulary."""
        target, value = statement.targets[0], statement.value
        assert isinstance(target, ast.Name)
        if isinstance(value, ast.Subscript):
            key = ast.literal_eval(value.slice)
            if key not in self.vocabulary:
                raise SyntaxError(f"kernels have no function {key!r}")
            self.functions[target.id] = self.vocabulary[key]
            return
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
            raise _unknown(statement)
        code = _CODES[value.func.attr]
        number = np.dtype(value.func.attr.rstrip("_")).type(ast.literal_eval(value.args[0])).item()
        self.constants[target.id] = Held(code, ir.Constant(TYPES[code], number))

    # -- statements

    def function(self, statement: ast.FunctionDef, name: str) -> None:
        """Translate the function."""
        kind = ir.FunctionType(ir.VoidType(), [TYPES["i64"]])
        function = ir.Function(self.module, kind, name)
        entry = function.append_basic_block("entry")
        body = function.append_basic_block("body")
        self.entry = ir.IRBuilder(entry)
        self.builder = ir.IRBuilder(body)
        self.machine = Machine(self.module, self.builder)
        function.args[0].name = "block"
        self._assign("block", Held("i64", function.args[0]))
        self._block(statement.body)
        self.builder.ret_void()
        self.entry.branch(body)

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                self._assignment(statement.targets[0], statement.value)
            elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                name = statement.target.id
                old = ast.Name(name, ast.Load())
                self._assign(name, self._value(ast.BinOp(old, statement.op, statement.value)))
            elif isinstance(statement, ast.Expr):
                self._value(statement.value)
            elif isinstance(statement, ast.For) and not statement.orelse:
                self._loop(statement)
            elif isinstance(statement, ast.While) and not statement.orelse:
                self._while(statement)
            elif isinstance(statement, ast.If):
                self._if(statement)
            elif isinstance(statement, ast.Continue):
                self.builder.branch(self.nexts[-1])
                return
            else:
                raise _unknown(statement)

    def _assignment(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._assign(target.id, self._value(value))
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            found = [self._value(each) for each in value.elts]
            for each, held in zip(target.elts, found, strict=True):
                if not isinstance(each, ast.Name):
                    raise _unknown(target)
                self._assign(each.id, held)
        else:
            raise _unknown(target)

    def _assign(self, name: str, held: Held) -> None:
        known = self.places.get(name)
        if known is None or known[0] != held.code:
            known = (held.code, self.entry.alloca(TYPES[held.code], name=name))
            self.places[name] = known
        self.builder.store(held.value, known[1])

    def _condition(self, node: ast.expr) -> Any:
        held = self._value(node)
        if held.code != "b8":
            raise SyntaxError(f"{ast.unparse(node)!r} is no condition")
        return held.value

    def _if(self, statement: ast.If) -> None:
        condition = self._condition(statement.test)
        if not statement.orelse:
            with self.builder.if_then(condition):
                self._block(statement.body)
            return
        with self.builder.if_else(condition) as (then, otherwise):
            with then:
                self._block(statement.body)
            with otherwise:
                self._block(statement.orelse)

    def _loop(self, statement: ast.For) -> None:
        assert isinstance(statement.target, ast.Name)
        call = statement.iter
        if not isinstance(call, ast.Call) or ast.unparse(call.func) not in _LOOPS:
            raise _unknown(statement)
        bounds = [self._value(arg).value for arg in call.args]
        zero, one = ir.Constant(TYPES["i64"], 0), ir.Constant(TYPES["i64"], 1)
        first = bounds[0] if len(bounds) > 1 else zero
        last = bounds[1] if len(bounds) > 1 else bounds[0]
        step = bounds[2] if len(bounds) > 2 else one
        builder = self.builder
        before = builder.block
        head = builder.append_basic_block("loop")
        after = ir.Block(builder.function, name="after")
        # The guard stands before the loop, so that the loop itself is a single block.
        builder.cbranch(builder.icmp_signed("<", first, last), head, after)
        builder.position_at_end(head)
        place = builder.phi(TYPES["i64"], name=statement.target.id)
        place.add_incoming(first, before)
        self._assign(statement.target.id, Held("i64", place))
        self._body(statement.body)
        following = builder.add(place, step, flags=("nsw",))
        place.add_incoming(following, builder.block)
        repeat = builder.cbranch(builder.icmp_signed("<", following, last), head, after)
        facts = _LOOPS[ast.unparse(call.func)]
        if facts:
            repeat.set_metadata("llvm.loop", self._marked_loop(facts))
        builder.function.blocks.append(after)
        builder.position_at_end(after)

    def _marked_loop(self, facts: Sequence[tuple[str, int | None]]) -> Any:
        """Return what tells LLVM facts about a loop.

        The node is one of its own, which ``translate`` lets refer to itself, as LLVM wants it.
        """
        self.marked_loops += 1
        told = [
            self.module.add_metadata(
                [name] if number is None else [name, ir.Constant(ir.IntType(32), number)]
            )
            for name, number in facts
        ]
        return self.module.add_metadata([f"{_ITSELF}.{self.marked_loops}", *told])

    def _body(self, statements: Sequence[ast.stmt]) -> None:
        """Write the body of a loop, and a block behind it where it is left early."""
        nodes = (node for statement in statements for node in ast.walk(statement))
        if not any(isinstance(node, ast.Continue) for node in nodes):
            self._block(statements)
            return
        following = ir.Block(self.builder.function, name="next")
        self.nexts.append(following)
        self._block(statements)
        self.nexts.pop()
        if not self.builder.block.is_terminated:
            self.builder.branch(following)
        self.builder.function.blocks.append(following)
        self.builder.position_at_end(following)

    def _while(self, statement: ast.While) -> None:
        builder = self.builder
        head = builder.append_basic_block("while")
        builder.branch(head)
        builder.position_at_end(head)
        condition = self._condition(statement.test)
        body = builder.append_basic_block("do")
        after = ir.Block(builder.function, name="after")
        builder.cbranch(condition, body, after)
        builder.position_at_end(body)
        self._body(statement.body)
        builder.branch(head)
        builder.function.blocks.append(after)
        builder.position_at_end(after)

    # -- expressions

    def _value(self, node: ast.expr) -> Held:
        if isinstance(node, ast.Name):
            return self._variable(node.id)
        if isinstance(node, ast.Constant):
            return self._number(node)
        if isinstance(node, ast.BinOp):
            return self._arithmetic(node)
        if isinstance(node, ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, ast.BoolOp):
            return self._logic(node)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._comparison(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._call(node.func.id, [self._value(arg) for arg in node.args])
        raise _unknown(node)

    def _variable(self, name: str) -> Held:
        if name in self.constants:
            return self.constants[name]
        if name not in self.places:
            raise SyntaxError(f"the kernel has no variable {name!r}")
        code, place = self.places[name]
        return Held(code, self.builder.load(place))

    def _number(self, node: ast.Constant) -> Held:
        code = {bool: "b8", int: "i64", float: "f64"}.get(type(node.value))
        if code is None:
            raise _unknown(node)
        return Held(code, ir.Constant(TYPES[code], node.value))

    def _arithmetic(self, node: ast.BinOp) -> Held:
        left, right = self._pair(node.left, node.right)
        if left.code != right.code:
            raise _mixed(node, left, right)
        if left.code == "i64" and isinstance(node.op, ast.FloorDiv):
            return Held(left.code, self._floor_divided(left.value, right.value))
        if left.code not in FLOATS and isinstance(node.op, ast.RShift):
            shift = self.builder.lshr if left.code in UNSIGNED else self.builder.ashr
            return Held(left.code, shift(left.value, right.value))
        table: dict[Any, str] = _FLOAT if left.code in FLOATS else _INTEGER
        name = table.get(type(node.op))
        if name is None:
            raise _unknown(node)
        return Held(left.code, getattr(self.builder, name)(left.value, right.value))

    def _pair(self, one: ast.expr, other: ast.expr) -> tuple[Held, Held]:
        """Return two operands; a whole number that stands in the source is of the other's dtype."""
        left, right = self._value(one), self._value(other)
        return _fitted(left, right, one), _fitted(right, left, other)

    def _floor_divided(self, x: Any, y: Any) -> Any:
        """Return the quotient rounded down, as Python has it; LLVM's is rounded towards 0."""
        b, zero = self.builder, ir.Constant(TYPES["i64"], 0)
        quotient, rest = b.sdiv(x, y), b.srem(x, y)
        inexact = b.icmp_signed("!=", rest, zero)
        below = b.icmp_signed("<", b.xor(rest, y), zero)
        return b.sub(quotient, b.zext(b.and_(inexact, below), TYPES["i64"]))

    def _unary(self, node: ast.UnaryOp) -> Held:
        held = self._value(node.operand)
        if isinstance(node.op, ast.Not) and held.code == "b8":
            return Held("b8", self.builder.not_(held.value))
        if isinstance(node.op, ast.USub) and held.code != "b8":
            negative = self.builder.fneg if held.code in FLOATS else self.builder.neg
            return Held(held.code, negative(held.value))
        raise _unknown(node)

    def _logic(self, node: ast.BoolOp) -> Held:
        combine = self.builder.and_ if isinstance(node.op, ast.And) else self.builder.or_
        total = self._condition(node.values[0])
        for each in node.values[1:]:
            total = combine(total, self._condition(each))
        return Held("b8", total)

    def _comparison(self, node: ast.Compare) -> Held:
        left, right = self._pair(node.left, node.comparators[0])
        sign = _COMPARE.get(type(node.ops[0]))
        if sign is None:
            raise _unknown(node)
        if left.code != right.code:
            raise _mixed(node, left, right)
        if left.code in FLOATS:
            # NaN equals nothing, itself included.
            unordered = sign == "!="
            compare = self.builder.fcmp_unordered if unordered else self.builder.fcmp_ordered
        else:
            unsigned = left.code in UNSIGNED
            compare = self.builder.icmp_unsigned if unsigned else self.builder.icmp_signed
        return Held("b8", compare(sign, left.value, right.value))

    def _call(self, name: str, args: list[Held]) -> Held:
        make = self.functions.get(name) or instruction(name) or self.vocabulary.get(name)
        if make is None:
            raise SyntaxError(f"kernels have no function {name!r}")
        return make(self.machine, args)


def _fitted(held: Held, other: Held, node: ast.expr) -> Held:
    """Return a whole number of the source as one of another operand's dtype, all else as it is."""
    whole = isinstance(node, ast.Constant) and type(node.value) is int
    if not whole or other.code in FLOATS or other.code == "b8":
        return held
    return Held(other.code, ir.Constant(TYPES[other.code], held.value.constant))


def _mixed(node: ast.AST, left: Held, right: Held) -> SyntaxError:
    return SyntaxError(
        f"{ast.unparse(node)!r} mixes {left.code} and {right.code}: convert one of them"
    )
