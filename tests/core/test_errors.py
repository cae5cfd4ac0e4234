"""The tree of errors: TensorFlow's families, what belongs to them, and what errors carry."""

import pickle

import numpy as np
import pytest

import headrace as hr
from headrace import errors

# `tf.errors` of TensorFlow 1.15.5: for each family the class's name and
# `tf.errors.error_code_from_exception_type(cls)`, which is its constant's value.
FAMILIES = {
    "CancelledError": ("CANCELLED", 1),
    "UnknownError": ("UNKNOWN", 2),
    "InvalidArgumentError": ("INVALID_ARGUMENT", 3),
    "DeadlineExceededError": ("DEADLINE_EXCEEDED", 4),
    "NotFoundError": ("NOT_FOUND", 5),
    "AlreadyExistsError": ("ALREADY_EXISTS", 6),
    "PermissionDeniedError": ("PERMISSION_DENIED", 7),
    "ResourceExhaustedError": ("RESOURCE_EXHAUSTED", 8),
    "FailedPreconditionError": ("FAILED_PRECONDITION", 9),
    "AbortedError": ("ABORTED", 10),
    "OutOfRangeError": ("OUT_OF_RANGE", 11),
    "UnimplementedError": ("UNIMPLEMENTED", 12),
    "InternalError": ("INTERNAL", 13),
    "UnavailableError": ("UNAVAILABLE", 14),
    "DataLossError": ("DATA_LOSS", 15),
    "UnauthenticatedError": ("UNAUTHENTICATED", 16),
}

# Headrace's own classes: the family of each, and the builtin kind that it stays.
KINDS = {
    "ShapeError": ("InvalidArgumentError", ValueError),
    "DTypeError": ("InvalidArgumentError", TypeError),
    "AttributeValueError": ("InvalidArgumentError", ValueError),
    "FeedError": ("InvalidArgumentError", ValueError),
    "PlacementError": ("InvalidArgumentError", ValueError),
    "NumericsError": ("InvalidArgumentError", FloatingPointError),
    "InvalidInputError": ("InvalidArgumentError", RuntimeError),
    "ResourceMismatchError": ("InvalidArgumentError", RuntimeError),
    "ResourceStateError": ("FailedPreconditionError", RuntimeError),
    "UninitializedError": ("FailedPreconditionError", RuntimeError),
    "ResourceNotFoundError": ("NotFoundError", RuntimeError),
    "CheckpointNotFoundError": ("NotFoundError", ValueError),
    "DatasetNotFoundError": ("NotFoundError", ValueError),
    "CheckpointDamagedError": ("DataLossError", ValueError),
    "DatasetDamagedError": ("DataLossError", ValueError),
    "CheckpointMismatchError": ("InvalidArgumentError", ValueError),
    "ClusterError": ("UnavailableError", RuntimeError),
    "ResourceExhaustedError": ("ResourceExhaustedError", MemoryError),
    "OutOfRangeError": ("OutOfRangeError", EOFError),
    "CancelledError": ("CancelledError", RuntimeError),
}

CLASSES = sorted(
    name for name, value in vars(errors).items() if isinstance(value, type) and "Error" in name
)


@pytest.mark.parametrize("name", FAMILIES)
def test_families_have_tensorflows_codes(name):
    kind = getattr(errors, name)
    constant, code = FAMILIES[name]
    assert getattr(errors, constant) == code
    assert issubclass(kind, errors.OpError)
    assert kind("text").error_code == code
    assert errors.exception_type_from_error_code(code) is kind
    assert errors.error_code_from_exception_type(kind) == code


@pytest.mark.parametrize("name", KINDS)
def test_own_errors_belong_to_a_family_and_keep_their_builtin_kind(name):
    family, builtin = KINDS[name]
    kind = getattr(errors, name)
    assert issubclass(kind, getattr(errors, family))
    assert issubclass(kind, builtin)
    assert kind("text").error_code == FAMILIES[family][1]


@pytest.mark.parametrize("name", CLASSES)
def test_every_error_is_made_of_a_message_and_pickles(name):
    error = getattr(errors, name)("what is wrong")
    error.located = True
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(error) == str(again) == "what is wrong"
    assert again.located


@pytest.mark.parametrize("name", FAMILIES)
def test_families_are_made_as_tensorflow_makes_them(name):
    node = errors.NodeDef("a/b", "MatMul", ("x:0",), "/cpu:0")
    error = getattr(errors, name)(node, None, "what is wrong")
    assert error.message == str(error) == "what is wrong"
    assert error.op is None
    assert error.node_def == node
    assert error.error_code == FAMILIES[name][1]
    assert pickle.loads(pickle.dumps(error)).node_def == node
    assert errors.OpError(None, None, "text", errors.ABORTED).error_code == errors.ABORTED


def test_no_family_has_other_codes():
    with pytest.raises(KeyError):
        errors.exception_type_from_error_code(99)
    with pytest.warns(UserWarning, match="KeyError belongs to no family"):
        assert errors.error_code_from_exception_type(KeyError) == errors.UNKNOWN


@pytest.mark.parametrize("executor", ["plain", "plan"])
@pytest.mark.needs("backend-cpu")
def test_an_error_of_a_step_has_the_operation_of_the_program(executor):
    x = hr.placeholder(hr.float32, [None])
    y = hr.placeholder(hr.int32, [None])
    gathered = hr.gather(x, y, name="pick") + 1
    with hr.Session(config=hr.Config(executor=executor)) as session:
        for _ in range(4):
            with pytest.raises(errors.InvalidArgumentError, match="'pick'") as caught:
                session.run(gathered, {x: [1.0, 2.0], y: [7]})
    error = caught.value
    assert error.op is hr.get_default_graph().get_operation_by_name("pick")
    assert error.node_def.name == "pick"
    assert error.node_def.op == error.op.type
    assert error.error_code == errors.INVALID_ARGUMENT
    assert isinstance(error, errors.ExecutionError)


@pytest.mark.needs("backend-cpu")
def test_what_a_function_holds_is_named_without_an_operation():
    found = hr.cond(
        hr.placeholder_with_default(np.True_, []),
        lambda: hr.gather([1.0], hr.placeholder_with_default(3, []), name="pick"),
        lambda: 0.0,
    )
    with (
        hr.Session() as session,
        pytest.raises(errors.InvalidArgumentError, match="pick") as caught,
    ):
        session.run(found)
    assert caught.value.node_def.op == "Gather"


@pytest.mark.needs("backend-cpu")
def test_a_placeholder_that_is_not_fed_is_an_invalid_argument():
    x = hr.placeholder(hr.float32, [], name="x")
    with hr.Session() as session, pytest.raises(errors.InvalidArgumentError, match="x:0"):
        session.run(x + 1)


@pytest.mark.needs("backend-cpu")
def test_reading_a_variable_without_a_value_is_a_failed_precondition():
    v = hr.Variable(1.0, name="v")
    expected = pytest.raises(errors.FailedPreconditionError, match="is not initialized: v")
    with hr.Session() as session, expected as caught:
        session.run(v.read_value() * 2)
    assert caught.value.op.graph is hr.get_default_graph()


# What TensorFlow 1.15.5 raises where `tf.py_func` of a function raises the first.
RAISED = [
    (ValueError("v"), errors.InvalidArgumentError),
    (TypeError("t"), errors.InvalidArgumentError),
    (NotImplementedError("n"), errors.UnimplementedError),
    (StopIteration(), errors.OutOfRangeError),
    (MemoryError("m"), errors.ResourceExhaustedError),
    (KeyError("k"), errors.UnknownError),
    (RuntimeError("r"), errors.UnknownError),
]


@pytest.mark.parametrize(("raised", "family"), RAISED, ids=[type(r).__name__ for r, _ in RAISED])
@pytest.mark.needs("backend-cpu")
def test_what_python_functions_raise_gets_tensorflows_family(raised, family):
    def fail():
        raise raised

    value = hr.py_func(fail, [], hr.float32)
    with hr.Session() as session, pytest.raises(family) as caught:
        session.run(value)
    assert caught.value.op is value.op


# -- values in messages


class _ReprRaises:
    def __repr__(self) -> str:
        raise ValueError("no")


class _ReprRecurses:
    def __repr__(self) -> str:
        return repr(self)


class _ReprIsNoText:
    def __repr__(self) -> str:
        return 5  # type: ignore[return-value]


def _nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (_ReprRaises(), "a _ReprRaises that cannot be shown"),
        ([_ReprRaises()], "a list that cannot be shown"),
        (_ReprIsNoText(), "a _ReprIsNoText that cannot be shown"),
        (_ReprRecurses(), "a _ReprRecurses nested deeper than Python can show"),
        (_nested(10**5), "a list nested deeper than Python can show"),
        (10**5000, "an integer of 16610 bits"),
        (-(10**5000), "an integer of 16610 bits"),
        ("x" * 500, "'" + "x" * 116 + "..."),
        (np.eye(2), "array([[1., 0.], [0., 1.]])"),
        ("a\ud800\n", r"'a\ud800\n'"),
    ],
    ids=[
        *("repr raises", "a list of such", "repr is no text", "repr recurses", "deep list"),
        *("many digits", "many digits below 0", "long text", "array", "surrogate"),
    ],
)
def test_a_message_shows_any_value_in_one_line(value, text):
    assert errors.shown(value) == text
