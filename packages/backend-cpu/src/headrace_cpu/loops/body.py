"""The body of a loop, read as what it is for all iterations at once.

What is computed are instructions, which only have to be told where tensors are. Everything else has
to be something of which that is known before the first round: an item of a list that the loop
reads, the part of an array that a counter picks, a value of the round before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from headrace import Operation, Tensor
from headrace.extend.devices import LoopForm, Region
from headrace.extend.records import dataclass
from headrace_cpu.program.schedule import Item
from headrace_cpu.program.values import Home, Values, is_native


class Unfit(Exception):  # noqa: N818 - nothing is wrong: rounds run one by one then
    """The body cannot be run so; says why."""


class Later(Unfit):
    """The body cannot be run so yet: a kernel is not there."""


@dataclass(frozen=True, slots=True)
class Pick:
    """A value that is picked from something by a counter, or taken off the end of a list.

    Attributes:
        source: What is picked from: a list that is an argument, or the parts along its first axis
            of an array that is one, or a constant.
        index: The integer that says which; None for the last that is left.
        zeros: Whether an item that is missing is read as zeros.
    """

    source: Tensor
    index: Tensor | None
    zeros: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """What each round does to a list.

    Attributes:
        kind: The type of the operation.
        index: Which item; None for one at the end.
        value: What becomes of it; None where it is taken away.
        once: Whether it must not have been there.
        like: The list that is as long, where one that is empty but for the item is added.
    """

    kind: str
    index: Tensor | None = None
    value: Tensor | None = None
    once: bool = False
    like: Tensor | None = None


@dataclass(slots=True)
class Made:
    """A value that an instruction makes in each round.

    Attributes:
        kept: Whether all rounds' are kept, rather than those of the last two.
        leads: The carried argument whose first value goes before them, None where none does.
    """

    kept: bool = False
    leads: Tensor | None = None


@dataclass(slots=True)
class Body:
    """What a loop's body does.

    Attributes:
        region: The body.
        values: Where its values live.
        form: How the loop hands values on.
        argument: The body's argument that each input is.
        results: What becomes of each carried argument, by number.
        made: What instructions make, where each round has a place of its own for it.
        picks: What is picked.
        changes: What each round does to a carried list, by the number of the argument.
        added: What each round adds to a part of a carried array, which nothing else reads, by the
            number of the argument. It is added behind the rounds.
        left_out: The items that would add it.
        going: What says whether another round follows, None where nothing does.
    """

    region: Region
    values: Values
    form: LoopForm
    argument: Mapping[Tensor, int]
    results: Sequence[Tensor]
    made: dict[Tensor, Made] = field(default_factory=dict)
    picks: dict[Tensor, Pick] = field(default_factory=dict)
    changes: dict[int, Change] = field(default_factory=dict)
    added: dict[int, Change] = field(default_factory=dict)
    left_out: set[Item] = field(default_factory=set)
    going: Tensor | None = None

    @property
    def kept(self) -> Sequence[Tensor]:
        """What is kept of each round."""
        return self.region.outputs[self.form.carried + self.form.asks :]

    def carried(self, root: Tensor) -> int | None:
        """Return which carried argument a tensor is, None for everything else."""
        number = self.argument.get(root)
        return number if number is not None and number < self.form.carried else None


def read(region: Region, items: Sequence[Item], values: Values, form: LoopForm) -> Body:
    """Read a body.

    Args:
        region: The body.
        items: What its program does, in order.
        values: Where the program's values live.
        form: How the loop hands values on.

    Raises:
        Unfit: if a round does what cannot be done without Python.
    """
    if region.options.recorder is not None:
        raise Unfit("the session measures each kernel")
    if region.early:
        raise Unfit("a value leaves it before a round ends")
    argument = dict(zip(region.inputs, form.arguments, strict=True))
    carried = form.carried
    body = Body(region, values, form, argument, region.outputs[:carried])
    if form.asks:
        body.going = values.root(region.outputs[carried])
        if not is_native(body.going):
            raise Unfit("its condition is no truth value")
    _Reader(body, items).run(items)
    return body


class _Reader:
    def __init__(self, body: Body, items: Sequence[Item]) -> None:
        self.body = body
        self.root = body.values.root
        inputs = [t for item in items if not body.values.is_view(item) for t in _inputs(item)]
        self.uses = Counter(map(self.root, (*inputs, *body.region.outputs)))
        # Which carried argument a result is for.
        self.result = {self.root(t): i for i, t in enumerate(body.results)}
        # Lists that are empty but for one item: how long they are, which item, and what it is.
        self.blank: dict[Tensor, Tensor] = {}
        self.single: dict[Tensor, Change] = {}
        # Arrays that are zeros but for one part: which part, and what it is.
        self.parts: dict[Tensor, Change] = {}
        # Which items of lists are read, by list.
        self.gets: dict[Tensor, list[Tensor]] = {}
        self.kept: list[Tensor] = list(body.kept)

    def run(self, items: Sequence[Item]) -> None:
        body, values = self.body, self.body.values
        for item in items:
            if values.is_view(item):
                continue
            if self._adds_part(item):
                continue
            if item.instruction is not None:
                if item.instruction.updates:
                    raise Unfit("a round changes a variable in place")
                for tensor in item.instruction.writes:
                    # What a loop makes that is an operation elsewhere is an object there.
                    if values.home[tensor] in (Home.RESULT, Home.OBJECT):
                        body.made.setdefault(tensor, Made())
            elif item.op.type != "NoOp" or item.op.inputs:
                self._operation(item.op)
        for tensor in self.parts:
            raise Unfit(f"{tensor.op.type} {tensor.op.name!r} runs in Python")
        self._check_lists()
        for tensor in self.kept:
            if tensor.dtype.kind == "list":
                raise Unfit("what is saved of each round is a list")
            self._keep(self.root(tensor), ())
        for tensor, number in body.argument.items():
            if number < body.form.carried and number not in body.added:
                self._check_carried(tensor, number)

    def _operation(self, op: Operation) -> None:
        rule = _RULES.get(op.type)
        if rule is None or op in self.body.region.reserved:
            raise Unfit(f"{op.type} {op.name!r} runs in Python")
        if not rule(self, op):
            raise Unfit(f"{op.type} {op.name!r} depends on what is computed in the loop")

    # -- what is kept

    def _keep(self, root: Tensor, seen: tuple[Tensor, ...]) -> None:
        """Let all rounds' values of a tensor be there when the loop has ended."""
        body = self.body
        number = body.carried(root)
        if root in seen:
            raise Unfit("variables change places")
        if number is not None:
            result = self.root(body.results[number])
            if result is root:
                return
            made = body.made.get(result)
            if made is not None and made.leads is None:
                made.leads = root
            self._keep(result, (*seen, root))
        elif root in body.made or body.values.home.get(root) in (Home.RESULT, Home.BUFFER):
            body.made.setdefault(root, Made()).kept = True

    def _check_carried(self, tensor: Tensor, number: int) -> None:
        """See to it that what a round hands to the next is still there when it is read."""
        result = self.root(self.body.results[number])
        if result is tensor or tensor.dtype.kind == "list":
            return
        given = self.body.results[number]
        if not is_native(tensor) or not is_native(given):
            raise Unfit("a variable is not numbers of a known shape")
        if given.dtype != tensor.dtype or given.spec.shape.known != tensor.spec.shape.known:
            raise Unfit("the shape of a variable changes")
        if self.body.carried(result) is not None:
            # It is read two rounds later, or more.
            self._keep(result, (tensor,))

    # -- lists

    def _listed(self, op: Operation) -> Tensor | None:
        """Return the argument that an operation's list is."""
        root = self.root(op.inputs[0])
        return root if root in self.body.argument else None

    def _changed(self, op: Operation, change: Change, changed: Tensor | None = None) -> bool:
        """Note that a round changes a list; return whether nothing else looks at it then."""
        given = self._listed(op) if changed is None else self.root(changed)
        made = op.outputs[0]
        number = self.result.get(made)
        if given is None or number is None or self.body.carried(given) != number:
            return False
        if self.uses[made] != 1 or number in self.body.changes:
            return False
        self.body.changes[number] = change
        if change.value is not None:
            self.kept.append(change.value)
        return change.index is None or self._whole(change.index)

    def _whole(self, index: Tensor) -> bool:
        """Whether an integer of each round is known before the first."""
        root = self.root(index)
        number = self.body.carried(root)
        if number is not None:
            # What a round hands to the next is known where no round computes it.
            before, root = root, self.root(self.body.results[number])
            if root is before:
                return True
        known = root in self.body.picks or self.body.values.home.get(root) is Home.PRESET
        return known or (root in self.body.argument and self.body.carried(root) is None)

    def pop(self, op: Operation) -> bool:
        """Take off the last item."""
        given = self._listed(op)
        if given is None or self.uses[given] != 1 or not is_native(op.outputs[1]):
            return False
        self.body.picks[op.outputs[1]] = Pick(given, None)
        return self._changed(op, Change(op.type))

    def get(self, op: Operation) -> bool:
        """Read an item."""
        given, index = self._listed(op), self.root(op.inputs[1])
        if given is None or not self._whole(index) or not is_native(op.outputs[0]):
            return False
        self.gets.setdefault(given, []).append(index)
        self.body.picks[op.outputs[0]] = Pick(given, index, zeros=len(op.inputs) > 2)
        return True

    def empty(self, op: Operation) -> bool:
        """Make a list as long as another, of no items."""
        given, made = self._listed(op), op.outputs[0]
        if given is None or self.uses[made] != 1:
            return False
        self.blank[made] = given
        return True

    def add(self, op: Operation) -> bool:
        """Add a list of one item."""
        for given, other in (op.inputs, reversed(op.inputs)):
            change = self.single.pop(other, None)
            if change is not None and self.root(given) in self.body.argument:
                return self._changed(op, change, given)
        return False

    def put(self, op: Operation) -> bool:
        """Set an item."""
        value = op.inputs[2]
        like = self.blank.get(op.inputs[0])
        if like is not None:
            made, index = op.outputs[0], self.root(op.inputs[1])
            self.single[made] = Change("TensorListAdd", index, value, once=True, like=like)
            return is_native(value) and self.uses[made] == 1
        change = Change(op.type, self.root(op.inputs[1]), value, once=op.attrs["once"])
        return is_native(value) and self._changed(op, change)

    def push(self, op: Operation) -> bool:
        """Append an item."""
        value = op.inputs[1]
        return is_native(value) and self._changed(op, Change(op.type, None, value))

    def clear(self, op: Operation) -> bool:
        """Let an item be missing."""
        return self._changed(op, Change(op.type, self.root(op.inputs[1])))

    def part(self, op: Operation) -> bool:
        """Read the part of an array that a counter picks."""
        array, begin = self.root(op.inputs[0]), self.root(op.inputs[1])
        # A part along the first axis, and all of the others.
        if op.attrs["entries"] not in ("i", "ie") or not is_native(op.outputs[0]):
            return False
        fixed = self.body.argument.get(array, -1) >= self.body.form.carried
        fixed = fixed or self.body.values.home.get(array) is Home.PRESET
        if not fixed or not is_native(array):
            return False
        if array.spec.shape.known[1:] != op.outputs[0].spec.shape.known:
            return False
        self.body.picks[op.outputs[0]] = Pick(array, begin)
        return self._whole(begin)

    def zeros_but_part(self, op: Operation) -> bool:
        """Make an array of zeros but for a part along the first axis."""
        made, begin, value = op.outputs[0], self.root(op.inputs[1]), op.inputs[4]
        if op.attrs["entries"] not in ("i", "ie") or not is_native(made) or not is_native(value):
            return False
        if made.spec.shape.known[1:] != value.spec.shape.known or self.uses[made] != 1:
            return False
        self.parts[made] = Change(op.type, begin, value)
        return self._whole(begin)

    def _adds_part(self, item: Item) -> bool:
        """Note that an item adds such an array to a carried one; return whether it does."""
        op = item.op
        if len(item.ops) != 1 or op.type != "Add":
            return False
        for given, other in (op.inputs, reversed(op.inputs)):
            root, made = self.root(given), op.outputs[0]
            number = self.result.get(made)
            if other not in self.parts or number is None or self.body.carried(root) != number:
                continue
            alone = self.uses[root] == self.uses[made] == 1
            if alone and given.spec.shape.known == made.spec.shape.known:
                change = self.body.added[number] = self.parts.pop(other)
                self.body.left_out.add(item)
                assert change.value is not None
                self.kept.append(change.value)
                return True
        return False

    def _check_lists(self) -> None:
        body = self.body
        for given, indices in self.gets.items():
            number = body.carried(given)
            if number is None or self.root(body.results[number]) is given:
                continue
            change = body.changes.get(number)
            alike = change is not None and all(index is change.index for index in indices)
            if change is None or change.kind != "TensorListClear" or not alike:
                raise Unfit("a round reads a list to which rounds write")
        for tensor, number in body.argument.items():
            if number >= body.form.carried or tensor.dtype.kind != "list":
                continue
            result = self.root(body.results[number])
            if result is not tensor and number not in body.changes:
                raise Unfit("lists change places")


def _inputs(item: Item) -> Sequence[Tensor]:
    if item.instruction is None:
        return item.op.inputs
    return item.instruction.reads


# What operations that are no instructions are for all rounds at once.
_RULES: dict[str, Callable[[_Reader, Operation], bool]] = {
    "StridedSlice": _Reader.part,
    "StridedSliceGrad": _Reader.zeros_but_part,
    "TensorListAdd": _Reader.add,
    "TensorListClear": _Reader.clear,
    "TensorListGet": _Reader.get,
    "TensorListPop": _Reader.pop,
    "TensorListPush": _Reader.push,
    "TensorListSet": _Reader.put,
    "TensorListZerosLike": _Reader.empty,
}
