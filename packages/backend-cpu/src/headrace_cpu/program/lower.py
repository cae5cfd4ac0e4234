"""Lowering: from the schedule of a program to the source of one straight-line Python function.

The function takes the inputs' values and returns the outputs. What it calls and the views of its
buffers are bound as variables of an enclosing function, made anew for each instance of the program.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from headrace import Operation, Tensor
from headrace.extend.devices import Region, Work
from headrace.extend.records import dataclass
from headrace_cpu.program.describe import works_of
from headrace_cpu.program.implementation import Implementation
from headrace_cpu.program.lifetimes import last_uses
from headrace_cpu.program.schedule import Item
from headrace_cpu.program.values import Home, Values

# What the source may use without its being bound.
RESERVED = (
    *("at", "solid", "copied", "empty", "errstate", "many", "take", "type", "clock", "point"),
    *("emit", "take_two"),
)
# What puts tensors into lists and takes them out.
_LIST_ITEMS = frozenset(
    f"TensorList{what}" for what in ("Clear", "Get", "Length", "Pop", "Push", "Set")
)
# Python's compiler takes time that grows with the square of the variables of an enclosing function.
_MOST_CELLS = 4000
# More that are told an address than these are told in a loop.
_MOST_LINES = 16


@dataclass(slots=True, eq=False)
class Lowered:
    """The source of a program.

    Attributes:
        source: It; a function ``make`` of everything bound returns the function of a step.
        flat: Whether what is bound are globals of the source instead, which has the function.
        lines: For every line of the source, the item for which it stands, or None.
        bound: Names of what is bound, in the order of ``make``'s arguments.
        calls: The name of each instruction's call.
        points: For each instruction the names of the functions that take addresses of tensors.
        together: Names of lists of such functions, which all take one address.
        views: The name of the array that shows a root's buffer under a tensor's shape.
        kernels: The name of each operation's plain kernel.
        presets: The names of known values.
        names: The name of each tensor's variable.
        dtypes: The dtypes of arrays by the names that the source has for them.
        seen: How many addresses are remembered from step to step.
        notes: The name of the function that notes when each piece of work began, where the
            session measures.
    """

    source: str = ""
    flat: bool = False
    lines: list[Item | None] = field(default_factory=list)
    bound: list[str] = field(default_factory=list)
    calls: dict[Implementation, str] = field(default_factory=dict)
    points: dict[Implementation, dict[Tensor, str]] = field(default_factory=dict)
    together: dict[str, list[tuple[Implementation, Tensor]]] = field(default_factory=dict)
    views: dict[Tensor, str] = field(default_factory=dict)
    kernels: dict[Any, str] = field(default_factory=dict)
    presets: dict[Tensor, str] = field(default_factory=dict)
    names: dict[Tensor, str] = field(default_factory=dict)
    dtypes: dict[str, Any] = field(default_factory=dict)
    seen: int = 0
    notes: dict[Work, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Taking:
    """Source that takes variables out of their cells for changing them in place.

    Attributes:
        take: Takes them.
        arrays: For each variable the expression of its array.
        undo: Puts the old values back.
        give: Puts the new values back.
        held: The targets that hold something meanwhile.
    """

    take: str
    arrays: list[str]
    undo: str
    give: str
    held: str


def lower(region: Region, items: Sequence[Item], values: Values) -> Lowered:
    """Return the source of a program."""
    return _Lowering(region, items, values).run()


class _Lowering:
    def __init__(self, region: Region, items: Sequence[Item], values: Values) -> None:
        self.region = region
        self.items = items
        self.values = values
        self.out = Lowered()
        self.body: list[tuple[str, Item | None]] = []
        self.taken: set[str] = {"values", "make", "run", "seen", "began", *RESERVED}
        # An operation may be called "float32", too.
        self.out.dtypes = _dtypes(region)
        self.taken.update(self.out.dtypes)
        # Where the search for a free name of a base goes on: thousands may share one.
        self.counts: dict[str, int] = {}
        self.last = last_uses(items, values)
        self.kept = {values.root(t) for t in region.outputs}
        # The outputs that others wait for, by the tensor that has the memory, where that is an
        # array of its own; and the names of what stands for those that were let go.
        self.early: dict[Tensor, list[int]] = {}
        for number in sorted(region.early):
            root = values.root(region.outputs[number])
            if values.home[root] is Home.RESULT:
                self.early.setdefault(root, []).append(number)
        self.sent: dict[int, str] = {}
        self.pointed: dict[Tensor, list[tuple[Implementation, Tensor]]] = {}
        self.plain = False

    def run(self) -> Lowered:
        for index, tensor in enumerate(self.region.inputs):
            self._line(f"{self._new(tensor)} = values[{index}]", None)
        if self.early:
            self._line(f"emit = values[{len(self.region.inputs)}]", None)
        self._find_pointed()
        for tensor in self.region.inputs:
            self._point(tensor, None)
        measured = self.region.options.recorder is not None
        works = works_of(self.region, self.items, self.values) if measured else {}
        for index, item in enumerate(self.items):
            if self.values.is_view(item):
                continue
            work = works.get(item)
            if work is not None:
                self._line("began = clock()", item)
            if item.instruction is not None:
                self._instruction(item.instruction, item)
            elif item.op.type != "NoOp":
                self._operation(item)
            if work is not None:
                note = self.out.notes[work] = self._bind(f"note_{work.name}")
                self._line(f"{note}(began)", item)
            self._emit(item)
            self._drop(index, item)
        results = ", ".join(map(self._result, range(len(self.region.outputs))))
        self._line(f"return [{results}]", None)
        self._assemble()
        return self.out

    # -- names

    def _fresh_name(self, wanted: str) -> str:
        base = re.sub(r"\W+", "_", wanted.rsplit("/", 2)[-1]).strip("_").lower() or "value"
        if base[0].isdigit() or keyword.iskeyword(base):
            base = f"v_{base}"
        name, count = base, self.counts.get(base, 1)
        while name in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.counts[base] = count
        self.taken.add(name)
        return name

    def _bind(self, wanted: str) -> str:
        name = self._fresh_name(wanted)
        self.out.bound.append(name)
        return name

    def _new(self, tensor: Tensor) -> str:
        """Return the variable that holds a tensor's array."""
        name = self.out.names.get(tensor)
        if name is None:
            suffix = f"_{tensor.index}" if tensor.index else ""
            name = self.out.names[tensor] = self._fresh_name(tensor.op.name + suffix)
        return name

    def _line(self, text: str, item: Item | None) -> None:
        self.body.append((text, item))

    # -- addresses

    def _find_pointed(self) -> None:
        """Find who must be told the address of a value that has another one in each step."""
        for item in self.items:
            instruction = item.instruction
            if instruction is None:
                continue
            for tensor in (*instruction.reads, *instruction.writes):
                root = self.values.root(tensor)
                if self.values.home[root] in (Home.OBJECT, Home.RESULT):
                    self.pointed.setdefault(root, []).append((instruction, tensor))

    def _point(self, root: Tensor, item: Item | None) -> None:
        """Tell everybody who works on a value's memory where it is in this step."""
        users = self.pointed.get(root)
        if not users:
            return
        name = self.out.names[root]
        if self.values.home[root] is Home.OBJECT:
            shape = root.shape.known
            self._line(f"{name} = solid({name}, {shape!r}, {_dtype(root)})", item)
        where, slot = self._fresh_name(f"at_{name}"), self.out.seen
        self.out.seen += 1
        self._line(f"{where} = at({name})", item)
        self._line(f"if {where} != seen[{slot}]:", item)
        self._line(f"    seen[{slot}] = {where}", item)
        told = list(dict.fromkeys(users))
        if len(told) > _MOST_LINES:
            # A function of very many variables takes long to compile.
            points = self._bind(f"points_{name}")
            self.out.together[points] = told
            self._line(f"    for point in {points}: point({where})", item)
            return
        for instruction, tensor in told:
            self._line(f"    {self._point_name(instruction, tensor)}({where})", item)

    def _point_name(self, instruction: Implementation, tensor: Tensor) -> str:
        points = self.out.points.setdefault(instruction, {})
        name = points.get(tensor)
        if name is None:
            hint = tensor.op.name.rsplit("/", 1)[-1]
            name = points[tensor] = self._bind(f"point_{instruction.name}_{hint}")
        return name

    # -- items

    def _instruction(self, instruction: Implementation, item: Item) -> None:
        for tensor in instruction.writes:
            root = self.values.root(tensor)
            if self.values.home[root] is Home.RESULT:
                name, shape = self._new(root), root.shape.known
                self._line(f"{name} = empty({shape!r}, {_dtype(root)})", item)
                self._point(root, item)
        name = self.out.calls[instruction] = self._bind(instruction.name)
        call = f"{name}(){_comment(item)}"
        if not instruction.updates:
            self._line(call, item)
            return
        self._in_place(instruction, item, call)

    def _in_place(self, instruction: Implementation, item: Item, call: str) -> None:
        """Run an instruction on variables that were taken out of their cells."""
        taking = self._taking(instruction)
        self._line(taking.take, item)
        self._line("try:", item)
        for handle, array in zip(instruction.updates, taking.arrays, strict=True):
            self._point_variable(instruction, handle, array, item)
        self._line(f"    {call}", item)
        self._line("except BaseException:", item)
        self._line(f"    {taking.undo}", item)
        self._line("    raise", item)
        self._line(taking.give, item)
        self._line(f"{taking.held} = None", item)

    def _taking(self, instruction: Implementation) -> _Taking:
        kinds = [_overwritten(instruction, t) for t in instruction.updates]
        cells = [self._array(t) for t in instruction.updates]
        makes = ["None" if kind == "None" else f"lambda: empty(*{kind})" for kind in kinds]
        if len(cells) == 2:
            return self._taking_two(cells, makes)
        if len(cells) > 1:
            taken = self._fresh_name("taken")
            return _Taking(
                take=f"{taken} = take(({', '.join(cells)}), ({', '.join(kinds)}))",
                arrays=[f"{taken}.arrays[{i}]" for i in range(len(cells))],
                undo=f"{taken}.undo()",
                give=f"{taken}.give()",
                held=taken,
            )
        # The usual case needs no object for several.
        new, old = self._fresh_name("new"), self._fresh_name("old")
        return _Taking(
            take=f"{new}, {old} = {cells[0]}.take({makes[0]})",
            arrays=[new],
            undo=f"{cells[0]}.give({old})",
            give=f"{cells[0]}.give({new})",
            held=f"{new} = {old}",
        )

    def _taking_two(self, cells: list[str], makes: list[str]) -> _Taking:
        new, old = ([self._fresh_name(what) for _ in cells] for what in ("new", "old"))
        names = [new[0], old[0], new[1], old[1]]

        def give(values: list[str]) -> str:
            return "; ".join(f"{c}.give({v})" for c, v in zip(cells, values, strict=True))

        return _Taking(
            take=f"{', '.join(names)} = take_two({', '.join((*cells, *makes))})",
            arrays=new,
            undo=give(old),
            give=give(new),
            held=" = ".join(names),
        )

    def _point_variable(
        self, instruction: Implementation, handle: Tensor, array: str, item: Item
    ) -> None:
        """Tell an instruction where the variable is that it changes."""
        where, slot = self._fresh_name("at_variable"), self.out.seen
        self.out.seen += 1
        shape, kind = _content(handle)
        self._line(f"    {where} = at(solid({array}, {shape!r}, {kind}))", item)
        self._line(f"    if {where} != seen[{slot}]:", item)
        self._line(f"        seen[{slot}] = {where}", item)
        self._line(f"        {self._point_name(instruction, handle)}({where})", item)

    def _operation(self, item: Item) -> None:
        op = item.op
        if op.type == "ReadVariable" and op not in self.region.reserved:
            self._line(f"{self._new(op.outputs[0])} = {self._array(op.inputs[0])}.read()", item)
            self._point(op.outputs[0], item)
            return
        self.plain = self.plain or not _is_quiet(op)
        kernel = self._bind(op.type)
        self.out.kernels[op] = kernel
        keep = op.schema.keeps_inputs or any(t.dtype.kind == "list" for t in op.outputs)
        # What a function is given is its caller's to keep.
        keep = keep and op.type != "While"
        given = []
        for tensor in op.inputs:
            text = self._array(tensor)
            lent = self.values.lent(tensor) or self._is_result(tensor)
            given.append(f"copied({text})" if keep and lent else text)
        call = f"{kernel}({', '.join(given)})"
        made = [self._new(t) for t in op.outputs]
        what = _comment(item)
        if len(made) == 1:
            self._line(f"{made[0]} = {call}{what}", item)
            self._line(f"if type({made[0]}) in many: {made[0]} = {made[0]}[0]", item)
        elif made:
            self._line(f"{', '.join(made)} = {call}{what}", item)
        else:
            self._line(f"{call}{what}", item)
        for tensor in op.outputs:
            self._point(tensor, item)

    def _is_result(self, tensor: Tensor) -> bool:
        return self.values.home_of(tensor) is Home.RESULT

    def _preset(self, tensor: Tensor) -> str:
        root = self.values.root(tensor)
        name = self.out.presets.get(root)
        if name is None:
            name = self.out.presets[root] = self._bind(root.op.name)
        return name

    def _array(self, tensor: Tensor) -> str:
        """Return the expression of a tensor's value, as plain kernels take it."""
        root = self.values.root(tensor)
        home = self.values.home[root]
        if home is Home.BUFFER:
            name = self.out.views.get(tensor)
            if name is None:
                name = self.out.views[tensor] = self._bind(f"{tensor.op.name}_view")
            return name
        name = self._preset(tensor) if home is Home.PRESET else self.out.names[root]
        if root is tensor or root.spec.shape == tensor.spec.shape:
            return name
        return f"{name}.reshape({tensor.shape.known!r})"

    def _emit(self, item: Item) -> None:
        """Let go of what an item has made and others wait for; it stays until the end, too."""
        writes = () if item.instruction is None else item.instruction.writes
        for index in [i for tensor in writes for i in self.early.get(tensor, ())]:
            sent = self.sent[index] = self._fresh_name("sent")
            value = self._array(self.region.outputs[index])
            self._line(f"{sent} = emit({index}, {value})", item)

    def _result(self, index: int) -> str:
        """Return the expression of an output, which the caller may keep."""
        if index in self.sent:
            return self.sent[index]
        tensor = self.region.outputs[index]
        text = self._array(tensor)
        if self.values.home_of(tensor) is not Home.RESULT and self.values.lent(tensor):
            return f"copied({text})"
        return text

    def _drop(self, index: int, item: Item) -> None:
        """Forget objects that nobody reads any more, so that their memory is free at once."""
        instruction = item.instruction
        if instruction is None:
            used: Sequence[Tensor] = (*item.op.inputs, *item.op.outputs)
        else:
            used = (*instruction.reads, *instruction.writes, *instruction.updates)
        dead = []
        for root in dict.fromkeys(map(self.values.root, used)):
            held = self.values.home[root] in (Home.OBJECT, Home.RESULT)
            if held and root not in self.kept and self.last.get(root, index) == index:
                dead.append(self.out.names[root])
        if dead:
            self._line(f"{' = '.join(dead)} = None", item)

    # -- the whole

    def _assemble(self) -> None:
        lines: list[tuple[str, Item | None]] = []
        if len(self.out.bound) > _MOST_CELLS:
            self.out.flat = True
            lines.append((f"seen = [None] * {self.out.seen}", None))
            lines.append(("def run(values):", None))
            indent = " " * 4
        else:
            arguments = ", ".join(self.out.bound)
            lines.append((f"def make({arguments}):", None))
            lines.append((f"    seen = [None] * {self.out.seen}", None))
            lines.append(("    def run(values):", None))
            indent = " " * 8
        if self.plain:
            # NumPy's floating-point exceptions are results here, not warnings.
            lines.append((f"{indent}with errstate(all='ignore'):", None))
            indent += " " * 4
        lines.extend((indent + text, item) for text, item in self.body)
        if not self.out.flat:
            lines.append(("    return run", None))
        self.out.source = "\n".join(text for text, _ in lines) + "\n"
        self.out.lines = [None, *(item for _, item in lines)]


def _is_quiet(op: Operation) -> bool:
    """Whether an operation computes no numbers: it moves or compares them, or holds tensors."""
    if op.schema.view or op.type in ("Const", "While"):
        return True
    if op.type in _LIST_ITEMS or op.type in ("Concat", "Split"):
        return True
    whole = all(t.dtype.is_integer or t.dtype.is_bool for t in op.inputs)
    return whole and op.schema.elementwise and all(t.dtype.is_bool for t in op.outputs)


def _dtypes(region: Region) -> dict[str, Any]:
    """Return the dtypes of a region's arrays by the names that the source has for them."""
    tensors = (t for op in region.graph.operations for t in (*op.inputs, *op.outputs))
    kinds = {t.spec.content.dtype if t.spec.content else t.dtype for t in tensors}
    plain = [kind for kind in kinds if kind.kind not in ("resource", "list", "string")]
    return {kind.numpy.name: kind.numpy for kind in plain}


def _content(handle: Tensor) -> tuple[tuple[int, ...], str]:
    """Return the shape of a variable, and the name of its dtype."""
    content = handle.spec.content
    assert content is not None
    return content.shape.known, content.dtype.numpy.name


def _overwritten(instruction: Implementation, handle: Tensor) -> str:
    """Return shape and dtype where an instruction overwrites all of a variable, else ``None``."""
    changes = [op.type for op in instruction.ops if op.inputs and op.inputs[0] is handle]
    if any(kind != "AssignVariable" for kind in changes):
        return "None"
    shape, kind = _content(handle)
    return f"({shape!r}, {kind})"


def _dtype(tensor: Tensor) -> str:
    return tensor.dtype.numpy.name


def _comment(item: Item) -> str:
    types = [op.type for op in item.ops]
    shown = ", ".join(types[:6]) + (f" and {len(types) - 6} more" if len(types) > 6 else "")
    return f"  # {shown}: {item.op.name}"
