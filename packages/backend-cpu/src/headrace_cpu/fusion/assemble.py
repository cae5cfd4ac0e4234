"""From the Python of a generated kernel to LLVM's assembly.

The sources of kernels use little of Python: assignments, loops over ``range``, conditions without
alternatives, numbers, and calls of the functions in ``instructions`` and ``functions``. What they
mean is what Python would mean by them, if values of a dtype stayed of that dtype. Translating that
little takes milliseconds, where numba takes about a second to load, and then a tenth of a second
or more for each kernel.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from headrace_cpu.fusion.instructions import TYPES, Held, Machine, instruction
from headrace_cpu.fusion.nodes import FLOATS

_CODES = {
    "bool_": "b8", "uint8": "u8", "int32": "i32", "int64": "i64", "float32": "f32",
    "float64": "f64",
}  # fmt: skip
_COMPARE = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_INTEGER = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
_FLOAT = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul"}


def assemble(text: str, name: str) -> str:
    """Translate a kernel.

    Args:
        text: Its source, which defines ``def name(block)``.
        name: The name of its function.

    Returns:
        A module of LLVM's assembly with ``void @name(i64 %block)``.

    Raises:
        SyntaxError: if the source uses more of Python than kernels do.
    """
    module = ir.Module(name="kernel")
    translator = _Translator(module)
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Assign):
            translator.constant(statement)
        elif isinstance(statement, ast.FunctionDef):
            translator.function(statement, name)
        else:
            raise _unknown(statement)
    return str(module).replace(f'@"{name}"(', f"@{name}(")


def _unknown(node: ast.AST) -> SyntaxError:
    return SyntaxError(f"kernels have no {ast.unparse(node)!r}")


class _Translator:
    def __init__(self, module: Any) -> None:
        self.module = module
        self.constants: dict[str, Held] = {}
        self.functions: dict[str, Any] = {}
        self.places: dict[str, tuple[str, Any]] = {}
        self.builder: Any = None
        self.machine: Machine

    # -- what comes before the function

    def constant(self, statement: ast.Assign) -> None:
        """Note a constant, or the name of an elementary function."""
        target, value = statement.targets[0], statement.value
        assert isinstance(target, ast.Name)
        if isinstance(value, ast.Subscript):
            from headrace_cpu.fusion.functions import WRITTEN

            op, dtype = ast.literal_eval(value.slice)
            self.functions[target.id] = (WRITTEN[op, dtype], dtype)
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
            if isinstance(statement, ast.Assign):
                target = statement.targets[0]
                assert isinstance(target, ast.Name)
                self._assign(target.id, self._value(statement.value))
            elif isinstance(statement, ast.Expr):
                self._value(statement.value)
            elif isinstance(statement, ast.For):
                self._loop(statement)
            elif isinstance(statement, ast.If) and not statement.orelse:
                with self.builder.if_then(self._value(statement.test).value):
                    self._block(statement.body)
            else:
                raise _unknown(statement)

    def _assign(self, name: str, held: Held) -> None:
        known = self.places.get(name)
        if known is None or known[0] != held.code:
            known = (held.code, self.entry.alloca(TYPES[held.code], name=name))
            self.places[name] = known
        self.builder.store(held.value, known[1])

    def _loop(self, statement: ast.For) -> None:
        assert isinstance(statement.target, ast.Name)
        call = statement.iter
        if not isinstance(call, ast.Call):
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
        self._block(statement.body)
        following = builder.add(place, step, flags=("nsw",))
        place.add_incoming(following, builder.block)
        builder.cbranch(builder.icmp_signed("<", following, last), head, after)
        builder.function.blocks.append(after)
        builder.position_at_end(after)

    # -- expressions

    def _value(self, node: ast.expr) -> Held:
        if isinstance(node, ast.Name):
            if node.id in self.constants:
                return self.constants[node.id]
            code, place = self.places[node.id]
            return Held(code, self.builder.load(place))
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return Held("i64", ir.Constant(TYPES["i64"], node.value))
        if isinstance(node, ast.BinOp):
            return self._arithmetic(node)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._comparison(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._call(node.func.id, [self._value(arg) for arg in node.args])
        raise _unknown(node)

    def _arithmetic(self, node: ast.BinOp) -> Held:
        left, right = self._value(node.left), self._value(node.right)
        table: dict[Any, str] = _FLOAT if left.code in FLOATS else _INTEGER
        name = table.get(type(node.op))
        if name is None or left.code != right.code:
            raise _unknown(node)
        return Held(left.code, getattr(self.builder, name)(left.value, right.value))

    def _comparison(self, node: ast.Compare) -> Held:
        left, right = self._value(node.left), self._value(node.comparators[0])
        sign = _COMPARE.get(type(node.ops[0]))
        if sign is None or left.code != right.code:
            raise _unknown(node)
        if left.code in FLOATS:
            # NaN equals nothing, itself included.
            unordered = sign == "!="
            compare = self.builder.fcmp_unordered if unordered else self.builder.fcmp_ordered
        else:
            unsigned = left.code in ("b8", "u8")
            compare = self.builder.icmp_unsigned if unsigned else self.builder.icmp_signed
        return Held("b8", compare(sign, left.value, right.value))

    def _call(self, name: str, args: list[Held]) -> Held:
        elementary = self.functions.get(name)
        if elementary is not None:
            from headrace_cpu.fusion.functions.emitter import FLOAT32, FLOAT64, Emitter

            written, dtype = elementary
            form = FLOAT32 if dtype == "float32" else FLOAT64
            value = written(Emitter(self.builder, form), *(arg.value for arg in args))
            return Held(args[0].code, value)
        make = instruction(name)
        if make is None:
            raise SyntaxError(f"kernels have no function {name!r}")
        return make(self.machine, args)
