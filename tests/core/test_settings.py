"""Settings from the environment, and options of devices, are those of whoever declares them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import warnings

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ConfigError
from headrace.extend import Floating, KernelTable, Spec, hookimpl, op
from headrace.extend.devices import DeviceOption, switch_option, whole_number_option
from headrace.extend.settings import (
    Setting,
    choice,
    missing_file,
    names,
    seconds,
    size,
    switch,
    text,
    whole_number,
)
from headrace.plugins import host as host_module
from headrace.plugins.host import PluginHost
from headrace.settings import nearest, unknown_variables

VARIABLE = "HEADRACE_TEST_SETTING"


def named(value):
    """Return what tells a case apart in every process: functions have addresses, sets no order."""
    if isinstance(value, set):
        return ",".join(sorted(value))
    return getattr(value, "__qualname__", str(value))


@pytest.mark.parametrize(
    ("parse", "written", "value"),
    [
        (text, " as it is ", "as it is"),
        (switch, "0", False),
        (switch, "1", True),
        (names, "one, two,", {"one", "two"}),
        (whole_number(), "3", 3),
        (whole_number(least=0), "0", 0),
        (seconds, "0.5", 0.5),
        (size, "1.5 KiB", 1536),
        (choice("on", "off"), "off", "off"),
    ],
    ids=named,
)
def test_values_are_read_of_texts(monkeypatch, parse, written, value):
    setting = Setting(VARIABLE, parse, "default", "for the test")
    assert setting.read() == "default"
    monkeypatch.setenv(VARIABLE, " ")
    assert setting.read() == "default"
    monkeypatch.setenv(VARIABLE, written)
    assert setting.read() == value
    assert setting.problem() == ""


@pytest.mark.parametrize(
    ("parse", "written", "expected"),
    [
        (whole_number(), "0", "a whole number above 0, got '0'"),
        (whole_number(least=2), "1.0", "a whole number of at least 2, got '1.0'"),
        (whole_number(), "many", "a whole number above 0, got 'many'"),
        (seconds, "-1", "a number above 0, got '-1'"),
        (seconds, "nan", "a number above 0, got 'nan'"),
        (size, "8GB", "a number of bytes above 0, or one of KiB, MiB or GiB as in 8GiB"),
        (choice("on", "off"), "of", "on or off, got 'of'"),
    ],
    ids=named,
)
def test_other_texts_are_refused(monkeypatch, parse, written, expected):
    setting = Setting(VARIABLE, parse, None, "for the test")
    monkeypatch.setenv(VARIABLE, written)
    with pytest.raises(ConfigError, match=f"{VARIABLE} must be {expected}"):
        setting.read()
    assert expected in setting.problem()
    assert setting.is_wrong()


def test_a_file_that_does_not_exist_is_told_once(monkeypatch, tmp_path):
    setting = Setting[str | None](VARIABLE, text, None, "a file", fault=missing_file)
    path = tmp_path / "library.so"
    monkeypatch.setenv(VARIABLE, str(path))
    with pytest.warns(RuntimeWarning, match=r"library.so', which is no file that exists") as told:
        assert setting.read() == setting.read() == str(path)
    assert len(told) == 1
    assert "no file that exists" in setting.problem()
    assert not setting.is_wrong()
    path.touch()
    assert setting.problem() == ""
    # The loader looks for a bare name in places of its own.
    monkeypatch.setenv(VARIABLE, "library.so")
    assert setting.read() == "library.so"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("HEADRACE_CASHE", "HEADRACE_CACHE"),
        ("HEADRACE_EXECUTER", "HEADRACE_EXECUTOR"),
        ("HEADRACE_WEATHER", ""),
    ],
)
def test_misspelt_variables_are_found(monkeypatch, name, meant):
    monkeypatch.setenv(name, "1")
    known = ["HEADRACE_CACHE", "HEADRACE_EXECUTOR"]
    assert unknown_variables(known)[name] == meant
    assert name not in unknown_variables([*known, name])


def test_the_prefix_tells_nothing():
    assert nearest("HEADRACE_Q", ["HEADRACE_A"], "HEADRACE_") == ""


# -- what plugins register


@op("OptionShown", stateful=True)
def shown(x: Floating) -> Spec:
    """Its kernel adds an option of its device."""
    return x


FAST = switch_option("fast", True, "be quick", shorthand=True)
LANES = whole_number_option("lanes", "how many")
SPEED = Setting("HEADRACE_TEST_SPEED", whole_number(), 7, "how quick")
TABLE = KernelTable()


@TABLE.stateful("OptionShown")
def _shown(ctx, x):
    return x + np.float32(FAST.read(ctx.options)) + np.float32(LANES.read(ctx.options) or 0)


class Owner:
    @hookimpl
    def headrace_register_settings(self, registry):
        registry.add(SPEED)

    @hookimpl
    def headrace_register_kernels(self, registry):
        registry.add("cpu", TABLE)


@pytest.fixture
def owned(monkeypatch, fake_entry, host_device):
    """A cpu device with options, and a setting."""

    class Devices(Owner):
        @hookimpl
        def headrace_register_devices(self, registry):
            registry.add("cpu", count=lambda: 1, factory=host_device, options=[FAST, LANES])

    monkeypatch.setattr(host_module, "_HOST", PluginHost([fake_entry("owned", Devices())]))


@pytest.mark.usefixtures("owned")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, 1.0),
        ({"fast": False}, 0.0),
        ({"device_options": {"cpu": {"fast": False, "lanes": 4}}}, 4.0),
        ({"fast": False, "device_options": {"cpu": {"lanes": 4}}}, 4.0),
        ({"fast": True, "device_options": {"cpu": {"fast": True}}}, 1.0),
    ],
    ids=named,
)
def test_kernels_see_the_options_of_their_device(given, expected):
    with hr.Graph().as_default(), hr.Session(config=hr.Config(**given)) as session:
        x = hr.placeholder("float32", [])
        assert session.run(shown(x), {x: 0.0}) == expected


@pytest.mark.usefixtures("owned")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"fst": False}, r"Config has no setting 'fst'; did you mean 'fast'\?"),
        ({"optimise": False}, r"no setting 'optimise'; did you mean 'optimize'\?"),
        ({"lanes": 2}, r"Config has no setting 'lanes'; there are .*fast"),
        ({"fast": 1}, "fast must be True or False, got 1"),
        ({"device_options": {"cup": {}}}, r"no kind of devices 'cup'; did you mean 'cpu'\?"),
        ({"device_options": {"tpu9": {}}}, "no kind of devices 'tpu9'; there are cpu"),
        ({"device_options": {"cpu": {"lane": 2}}}, r"no option 'lane'; did you mean 'lanes'\?"),
        ({"device_options": {"cpu": {"lanes": 0}}}, "lanes must be a whole number of at least 1"),
        ({"device_options": {"cpu": 3}}, r"device_options\['cpu'\] must be a dictionary"),
        ({"device_options": ["cpu"]}, "device_options must be a dictionary of options for each"),
        ({"fast": False, "device_options": {"cpu": {"fast": True}}}, "fast=False contradicts"),
    ],
    ids=named,
)
def test_options_that_nobody_has_are_refused(given, message):
    with pytest.raises(ConfigError, match=message):
        hr.Config(**given)


@pytest.mark.usefixtures("owned")
def test_a_config_is_a_value():
    config = hr.Config(fast=False, threads=2)
    assert config == hr.Config(device_options={"cpu": {"fast": False}}, threads=2)
    assert hash(config) == hash(hr.Config(fast=False, threads=2))
    assert config != hr.Config(threads=2)
    assert pickle.loads(pickle.dumps(config)) == copy.deepcopy(config) == config
    assert dataclasses.replace(config, threads=3) == hr.Config(fast=False, threads=3)
    assert (config.fast, hr.Config().fast) == (False, True)
    with pytest.raises(AttributeError, match="Config has no setting 'lanes'"):
        config.lanes  # noqa: B018


def test_without_options_no_plugin_is_loaded(monkeypatch):
    monkeypatch.setattr(host_module, "_HOST", PluginHost([None]))
    assert hr.Config(threads=2).options.of("cpu") == {}


@pytest.mark.usefixtures("owned")
def test_a_misspelt_variable_is_warned_about_once(monkeypatch):
    monkeypatch.setenv("HEADRACE_TEST_SPED", "1")
    monkeypatch.setenv("HEADRACE_ELSEWHERE", "1")
    with hr.Graph().as_default():
        with (
            pytest.warns(
                RuntimeWarning, match=r"HEADRACE_TEST_SPED; did you mean .*SPEED\?"
            ) as told,
            hr.Session() as session,
        ):
            session.run(hr.constant(1.0))
        assert len(told) == 1
        with warnings.catch_warnings(), hr.Session() as session:
            warnings.simplefilter("error")
            session.run(hr.constant(1.0))


@pytest.mark.usefixtures("owned")
def test_settings_are_known_by_package():
    found = host_module.host().settings.by_package()
    assert "HEADRACE_CACHE" in [setting.variable for setting in found["headrace-core"]]
    (others,) = (several for package, several in found.items() if package != "headrace-core")
    assert others == [SPEED]


def refused(fake_entry, *settings):
    class Plugin:
        @hookimpl
        def headrace_register_settings(self, registry):
            registry.add(*settings)

    found = PluginHost([fake_entry("taker", Plugin())])
    assert list(found.settings.by_package()) == ["headrace-core"]
    return found.broken()


def test_settings_of_core_are_not_to_be_had(fake_entry):
    mine = Setting("HEADRACE_CACHE", text, None, "mine")
    assert "HEADRACE_CACHE" in refused(fake_entry, mine)


def test_a_setting_is_added_once_and_is_one(fake_entry):
    assert "HEADRACE_TEST_SPEED is added twice" in refused(fake_entry, SPEED, SPEED)
    assert "a setting is a headrace.extend.settings.Setting" in refused(fake_entry, "HEADRACE_X")


def test_options_have_defaults():
    option = DeviceOption("word", "a", lambda v: isinstance(v, str), "a text", "a word")
    assert option.read({}) == "a"
    assert option.read({"word": "b"}) == "b"
