"""Sessions with the target behave as others do, and leave a line for each step."""

import json

import pytest

import headrace as hr
from headrace.errors import ConfigError, ExecutionError, PluginError


def test_each_step_leaves_a_line(tmp_path):
    log = tmp_path / "steps.jsonl"
    x = hr.placeholder(hr.float32, [None])
    w = hr.Variable(2.0)
    with hr.Session(f"record:{log}") as session:
        session.run(w.initializer)
        for n in (3, 4):
            assert session.run(hr.reduce_sum(x * w), {x: [1.0] * n}) == 2 * n
        session.run(hr.reduce_sum(x * w), {x: [1.0]})
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["fed"] for line in lines] == [[], [[3]], [[4]], [[1]]]
    assert all(line["seconds"] >= 0 for line in lines)


def test_errors_are_those_of_other_sessions(tmp_path):
    x, y = (hr.placeholder(hr.float32, None) for _ in range(2))
    with (
        hr.Session(f"record:{tmp_path / 'log'}") as session,
        pytest.raises(ExecutionError, match="MatMul failed"),
    ):
        session.run(hr.matmul(x, y), {x: [[1.0]], y: [[1.0], [2.0]]})


def test_a_file_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot write the records of .*No such file"):
        hr.Session(f"record:{tmp_path}/no/folder")


def test_other_targets_are_left_alone():
    with pytest.raises(PluginError, match="no plugin opens the session target 'elsewhere'"):
        hr.Session("elsewhere")
