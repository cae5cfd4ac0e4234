"""Small functions and modules of TensorFlow 1.x that old programs name."""

from __future__ import annotations

import importlib
import logging
from pathlib import Path
from types import ModuleType

import pytest

import headrace as hr
from headrace.errors import ArgumentTypeError, AttributeValueError, DTypeError, UnimplementedError
from headrace.graph import conversion_registry as conversions
from tests.children import run_program


class Metres:
    """A number of metres, of which a test makes tensors."""

    def __init__(self, number):
        self.number = number


@pytest.fixture
def no_conversions(monkeypatch):
    """Forget what a test registers."""
    monkeypatch.setattr(conversions, "CONVERSIONS", kept := [])
    monkeypatch.setattr("headrace.graph.convert.CONVERSIONS", kept)


def test_types_of_programs_convert(no_conversions):
    asked = []

    def refuse(value, dtype=None, name=None, as_ref=False):
        asked.append(value)
        return NotImplemented

    hr.register_tensor_conversion_function(
        Metres, lambda value, dtype=None, name=None, as_ref=False: hr.constant(value.number)
    )
    hr.register_tensor_conversion_function((Metres, set), refuse, priority=1)
    with hr.Graph().as_default():
        assert hr.add(Metres(3.0), 1.0).dtype == hr.float32
        assert hr.stack([Metres(1.0), 2.0]).shape == [2]
        assert hr.convert_to_tensor(Metres(2.0)).op.type == "Const"
        with pytest.raises(DTypeError, match=r"is float32|expected int32"):
            hr.convert_to_tensor(Metres(2.0), hr.int32)
    assert asked


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, len), r"base_type must be a type"),
        ((Metres, 3), r"conversion_func must be a function"),
        ((float, len), r"convert in one way only"),
    ],
)
def test_conversions_that_are_refused(no_conversions, arguments, message):
    with pytest.raises(ArgumentTypeError, match=message):
        hr.register_tensor_conversion_function(*arguments)


def test_a_conversion_must_return_a_tensor(no_conversions):
    def wrong(value, dtype=None, name=None, as_ref=False):
        return value.number

    hr.register_tensor_conversion_function(Metres, wrong)
    with hr.Graph().as_default(), pytest.raises(DTypeError, match=r"'wrong' must return a tensor"):
        hr.convert_to_tensor(Metres(2.0))


def test_what_is_a_tensor():
    with hr.Graph().as_default():
        x = hr.constant([1.0])
        sparse = hr.SparseTensor([[0]], [1.0], [2])
        yes = [x, hr.Variable(1.0), sparse, hr.IndexedSlices(x, [0])]
        assert all(map(hr.is_tensor, yes))
        assert not any(map(hr.is_tensor, [1.0, [x], None, hr.SparseTensorValue([[0]], [1.0], [2])]))


def test_modes():
    assert not hr.executing_eagerly()
    hr.disable_eager_execution()
    hr.enable_resource_variables()
    assert hr.resource_variables_enabled()
    for refuse in (hr.enable_eager_execution, hr.enable_v2_behavior):
        with pytest.raises(UnimplementedError, match=r"there is no eager mode"):
            refuse()
    assert (hr.half, hr.double) == (hr.float16, hr.float64)


# As TensorFlow 1.15.5 has them.
def test_device_specs():
    spec = hr.DeviceSpec(job="ps", task=1, device_type="cpu", device_index=0)
    assert spec.to_string() == "/job:ps/task:1/device:CPU:0"
    assert hr.DeviceSpec.from_string("/job:ps/cpu:0").to_string() == "/job:ps/device:CPU:0"
    assert hr.DeviceSpec.from_string("/replica:3/gpu:*").to_string() == "/replica:3/device:GPU:*"
    assert hr.DeviceSpec().to_string() == ""
    spec.merge_from(hr.DeviceSpec(job="worker"))
    assert spec.to_string() == "/job:worker/task:1/device:CPU:0"
    assert spec.replace(task=None).to_string() == "/job:worker/device:CPU:0"
    with hr.Graph().as_default(), hr.device(hr.DeviceSpec(device_type="CPU", device_index=0)):
        assert hr.constant(1.0).device == "/device:cpu:0"
    with pytest.raises(ArgumentTypeError, match=r"task must be an integer"):
        hr.DeviceSpec(task="a")


def test_nests():
    structure = {"b": [1, (2, 3)], "a": 4}
    assert hr.nest.flatten(structure) == [4, 1, 2, 3]
    assert hr.nest.pack_sequence_as(structure, [1, 2, 3, 4]) == {"b": [2, (3, 4)], "a": 1}
    assert hr.nest.map_structure(lambda a, b: a + b, [1, (2,)], [3, (4,)]) == [4, (6,)]
    assert hr.nest.is_nested([1])
    assert not hr.nest.is_nested("ab")
    hr.nest.assert_same_structure([1, 2], (3, 4), check_types=False)
    cases = [
        (lambda: hr.nest.assert_same_structure([1], (1,)), TypeError, "list and tuple"),
        (lambda: hr.nest.assert_same_structure([1], [1, 2]), ValueError, "structures differ"),
        (lambda: hr.nest.assert_same_structure([1], 1), ValueError, "structures differ"),
        (lambda: hr.nest.assert_same_structure({"a": 1}, {"b": 1}), ValueError, "keys differ"),
        (lambda: hr.nest.pack_sequence_as([1, 2], [1]), ValueError, "2 leaves, flat_sequence 1"),
        (lambda: hr.nest.pack_sequence_as([1], 1), TypeError, "must be a list"),
        (lambda: hr.nest.map_structure(3, [1]), TypeError, "must be a function"),
        (lambda: hr.nest.map_structure(len), ValueError, "needs a structure"),
        (lambda: hr.nest.map_structure(len, [1], x=2), AttributeValueError, "got \\['x'\\]"),
    ]
    for call, error, message in cases:
        with pytest.raises(error, match=message):
            call()


@pytest.mark.needs("train")
def test_compat_v1_has_the_names_of_the_package():
    assert isinstance(hr.compat.v1, ModuleType)
    assert importlib.import_module("headrace.compat.v1") is hr.compat.v1 is hr.compat.v1.compat.v1
    names = [name for name in dir(hr) if not name.startswith("_")]
    assert {"Session", "constant", "train", "nn"} < set(names) == set(dir(hr.compat.v1))
    assert not [name for name in names if getattr(hr.compat.v1, name) is not getattr(hr, name)]
    assert hr.compat.v1.train.AdamOptimizer is hr.train.AdamOptimizer
    starred: dict[str, object] = {}
    exec("from headrace.compat.v1 import *", starred)
    assert set(hr.__all__) < set(starred)
    assert hr.compat.v1.__version__ == hr.__version__


@pytest.mark.parametrize(
    ("module", "name", "match"),
    [
        ("headrace.compat.v1", "nowhere", "has no attribute 'nowhere'"),
        ("headrace.compat.v1", "_host", "v1 has no attribute '_host'"),
        (
            "headrace.compat",
            "v2",
            "no attribute 'v2'; the names of TensorFlow 1.15 are those of hr",
        ),
    ],
)
def test_compat_refuses_other_names(module, name, match):
    with pytest.raises(AttributeError, match=match):
        getattr(importlib.import_module(module), name)


def test_compat_v1_is_made_when_it_is_named():
    code = "import sys, headrace as hr; hr.compat; print('headrace.compat.v1' in sys.modules)"
    found = run_program(code)
    assert found.stdout.strip() == "False", found.stderr


def test_compat():
    assert (hr.compat.as_bytes("ä"), hr.compat.as_text(b"\xc3\xa4")) == (b"\xc3\xa4", "ä")
    assert (hr.compat.as_str("a"), hr.compat.as_str_any(3)) == ("a", "3")
    assert hr.compat.as_str_any(b"a") == "a"
    assert (hr.compat.path_to_str(Path("a")), hr.compat.path_to_str("b")) == ("a", "b")
    assert hr.compat.forward_compatible(2019, 1, 1)
    assert not hr.compat.forward_compatible(2099, 1, 1)
    with hr.compat.forward_compatibility_horizon(2100, 1, 1):
        assert hr.compat.forward_compatible(2099, 12, 31)
        with hr.compat.forward_compatibility_horizon(2018, 1, 1):
            assert not hr.compat.forward_compatible(2019, 1, 1)
        assert not hr.compat.forward_compatible(2100, 1, 1)
    assert not hr.compat.forward_compatible(2099, 1, 1)
    with pytest.raises(ValueError, match="the year, month and day of a date, got 2019, 13, 1"):
        hr.compat.forward_compatibility_horizon(2019, 13, 1).__enter__()
    for convert in (hr.compat.as_bytes, hr.compat.as_text):
        with pytest.raises(TypeError, match=r"expected bytes or a string, got 3"):
            convert(3)


def test_logging(caplog):
    level = hr.logging.get_verbosity()
    try:
        hr.logging.set_verbosity(hr.logging.INFO)
        with caplog.at_level(logging.INFO, "headrace"):
            hr.logging.info("step %d", 3)
            hr.logging.debug("not shown")
            for _ in range(5):
                hr.logging.log_every_n(hr.logging.WARN, "every", 2)
                hr.logging.log_first_n(hr.logging.ERROR, "first", 2)
            hr.logging.log_if(hr.logging.WARN, "never", False)
        found = [record.getMessage() for record in caplog.records]
    finally:
        hr.logging.set_verbosity(level)
    assert found == ["step 3", "every", "first", "first", "every", "every"]
