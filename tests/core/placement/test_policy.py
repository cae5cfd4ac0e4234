"""Placement policies: what rules do, what limits of memory refuse, and what is no policy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ConfigError, NoDeviceError, PlacementError, ResourceExhaustedError

pytestmark = pytest.mark.usefixtures("mini")

START = np.linspace(-1, 1, 8, dtype=np.float32)
POLICIES = {
    "none": None,
    "one device": [("*", "/cpu:1")],
    "by name": [("y", "toy"), ("second*", "/cpu:1")],
    "spread": [(["first", "second"], ["/cpu:0", "/cpu:1"])],
}


def program() -> tuple[hr.Tensor, hr.Tensor, hr.Operation]:
    """A model whose own requests policies go over."""
    x = hr.placeholder(hr.float32, [8], name="x")
    with hr.device("/cpu:0"):
        first = hr.Variable(START, name="first")
        second = hr.Variable(START * 3, name="second")
    y = hr.add(hr.add(x, first), second, name="y")
    return x, y, hr.group(hr.assign_add(first, y), hr.assign_add(second, y))


def devices(session: hr.Session, fetch: object, feed: object = None) -> dict[str, str]:
    """The device of each operation, without its task, as ``explain`` tells."""
    placed = session.explain(fetch, feed).placement
    return {name: p.device.rpartition("/")[2] for p in placed for name in p.operations}


@pytest.mark.parametrize("name", POLICIES)
def test_a_program_computes_the_same_with_any_policy(name: str) -> None:
    rules = POLICIES[name]
    x, y, step = program()
    expected = [START, START * 3]
    with hr.Session(
        config=hr.Config(placement=None if rules is None else hr.PlacementPolicy(rules))
    ) as session:
        session.run(hr.global_variables_initializer())
        for i in range(3):
            feed = START * np.float32(i)
            total = (feed + expected[0]) + expected[1]
            np.testing.assert_array_equal(session.run(y, {x: feed}), total)
            session.run(step, {x: feed})
            expected = [value + total for value in expected]
        found = devices(session, y, {x: START})
    places = {
        "none": ("device:cpu:0", "device:cpu:0"),
        "one device": ("device:cpu:1", "device:cpu:1"),
        "by name": ("device:cpu:0", "device:cpu:1"),
        "spread": ("device:cpu:0", "device:cpu:1"),
    }[name]
    assert (found["first"], found["second"]) == places


def test_a_policy_comes_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(
        '[[place]]\noperations = "first*"\ndevice = "/cpu:1"\n'
        '[[place]]\noperations = ["eval/*", "third"]\ndevice = "toy"\noptional = true\n'
        '[memory]\n"/cpu:1" = "1 KiB"\n"toy" = 4000000\n'
    )
    x, y, _ = program()
    config = hr.Config(placement=path)
    assert config.placement.memory[0][1] == 1024
    with hr.Session(config=config) as session:
        text = str(session.explain(y, {x: START}))
    assert f"on /job:localhost/task:0/device:cpu:1, {path} says so: 'first*' -> " in text


def test_what_a_device_leaves_open_stays_as_the_model_asks() -> None:
    with hr.device("/job:localhost/task:0/device:cpu:1"):
        kept = hr.add(1.0, 2.0, name="kept")
        free = hr.add(1.0, 3.0, name="free")
    policy = hr.PlacementPolicy([("kept", "/job:localhost"), ("*", "")])
    with hr.Session(config=hr.Config(placement=policy, optimize=False)) as session:
        found = devices(session, [kept, free])
    assert (found["kept"], found["free"]) == ("device:cpu:1", "device:cpu:0")


def test_the_first_rule_counts_for_all_that_share_a_device() -> None:
    v = hr.Variable(START, name="table")
    update = hr.assign_add(v, START, name="train/update")
    policy = hr.PlacementPolicy([("table", "/cpu:1"), ("train/*", "/cpu:0")])
    with hr.Session(config=hr.Config(placement=policy)) as session:
        found = devices(session, update)
    assert (found["table"], found["train/update"]) == ("device:cpu:1", "device:cpu:1")


def test_several_devices_share_variables_by_their_bytes() -> None:
    for i, size in enumerate((100, 10, 20, 30)):
        hr.Variable(hr.zeros([size]), name=f"v{i}")
    policy = hr.PlacementPolicy([("v*", ["/cpu:0", "/cpu:1"])])
    with hr.Session(config=hr.Config(placement=policy)) as session:
        found = devices(session, hr.global_variables_initializer())
        assert [found[f"v{i}"][-1] for i in range(4)] == list("0111")
        # What comes later moves nothing that is there.
        hr.Variable(hr.zeros([5]), name="v4")
        again = devices(session, hr.global_variables_initializer())
    assert [again[f"v{i}"][-1] for i in range(5)] == list("01111")


def test_variables_go_where_there_is_room() -> None:
    for i in range(3):
        hr.Variable(hr.zeros([100]), name=f"v{i}")
    policy = hr.PlacementPolicy([("v*", ["/cpu:0", "/cpu:1"])], {"/cpu:0": 500, "/cpu:1": "1 kB"})
    with hr.Session(config=hr.Config(placement=policy)) as session:
        found = devices(session, hr.global_variables_initializer())
        assert [found[f"v{i}"][-1] for i in range(3)] == list("011")
        hr.Variable(hr.zeros([100]), name="v3")
        with pytest.raises(
            ResourceExhaustedError,
            match=r"(?s)no device has room for 'v3' of 400 B.*400 B of variables are on "
            r"/device:cpu:0, which may hold 500 B.*test_policy.py",
        ):
            session.run(hr.global_variables_initializer())


def test_limits_hold_for_variables_without_a_rule() -> None:
    first = hr.Variable(hr.zeros([100]), name="small")
    second = hr.Variable(hr.zeros([200]), name="large")
    policy = hr.PlacementPolicy(memory={"/cpu:0": "1 kB"})
    with hr.Session(config=hr.Config(placement=policy)) as session:
        session.run(first.initializer)
        for _ in range(2):
            with pytest.raises(ResourceExhaustedError, match="no device has room for 'large'"):
                session.run(second.initializer)
        assert session.run(first).shape == (100,)


@pytest.mark.parametrize(
    ("rules", "memory", "error", "match"),
    [
        ([("nothing/*", "/cpu:0")], {}, PlacementError, r"no operation is named 'nothing/\*'"),
        ([("while/body/*", "/cpu:0")], {}, PlacementError, "graph has"),
        ([("y", "/cpu:7")], {}, NoDeviceError, r"(?s)names device '/device:cpu:7' \('y'\).*cpu:1"),
        ([("y", "/job:ps/task:0")], {}, NoDeviceError, "'/job:ps/task:0' .'y'., which is not th"),
        ([], {"/cpu:3": 1}, NoDeviceError, r"device:cpu:3' \(memory\), which is not there"),
    ],
)
def test_policies_that_do_not_fit_are_refused(rules, memory, error, match) -> None:
    x, y, _ = program()
    with (
        hr.Session(config=hr.Config(placement=hr.PlacementPolicy(rules, memory))) as session,
        pytest.raises(error, match=match),
    ):
        session.run(y, {x: START})


def test_soft_placement_forgives_devices_that_are_not_there() -> None:
    y = hr.add(1.0, 2.0, name="y")
    policy = hr.PlacementPolicy([("y", "/cpu:7")])
    with hr.Session(config=hr.Config(placement=policy, allow_soft_placement=True)) as session:
        assert session.run(y) == 3.0


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: hr.Config(placement=3), "hr.PlacementPolicy or the name of its file, got 3"),
        (lambda: hr.Config(placement="none.toml"), "cannot read the placement policy.*none.toml"),
        (lambda: hr.PlacementPolicy(["y"]), "or a pair of patterns and device, got 'y'"),
        (lambda: hr.PlacementPolicy("y"), "rules must be a list of hr.PlacementRule, got 'y'"),
        (lambda: hr.PlacementPolicy([("y", "!")]), "'!' is not a device name"),
        (lambda: hr.PlacementPolicy([("", "/cpu:0")]), "a rule needs patterns of names, got ''"),
        (lambda: hr.PlacementPolicy([(3, "/cpu:0")]), "a rule needs patterns of names, got 3"),
        (lambda: hr.PlacementPolicy([("y", [])]), "the rule for y names no device"),
        (lambda: hr.PlacementRule("y", "", optional=1), "optional must be true or false, got 1"),
        (lambda: hr.PlacementPolicy(memory=["/cpu:0"]), "memory must be sizes by device, got"),
        (lambda: hr.PlacementPolicy(memory={"/cpu:0": "1 pound"}), "a text such as '512 MiB'"),
        (lambda: hr.PlacementPolicy(memory={"/cpu:0": -1}), "bytes.* got -1"),
        (lambda: hr.PlacementPolicy(memory={"/cpu:0": True}), "bytes.* got True"),
    ],
)
def test_what_is_no_policy_is_refused(make, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        make()


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("[[place]", "is not TOML: "),
        ("place = 3", r"write each rule as a table \[\[place\]\]"),
        ("[rules]", "there is no 'rules' in a placement policy, only place, memory"),
        ('[[place]]\nname = "y"', "rule 1: there is no 'name' in a placement policy, only oper"),
        ('[[place]]\noperations = "y"', "rule 1 needs 'device'"),
        ('[[place]]\noperations = 3\ndevice = ""', "rule 1: a rule needs patterns of names"),
        ('[memory]\n"/cpu:0" = "much"', "policy.toml: the memory of '/cpu:0' must be a number"),
    ],
)
def test_what_is_no_file_of_a_policy_is_refused(tmp_path: Path, text: str, match: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=match):
        hr.Config(placement=str(path))
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="is not TOML"):
        hr.PlacementPolicy.from_file(path)
