"""The parameters of a model as a table."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.errors import AttributeValueError

TABLE = """\
scope      variable                   dtype    shape   parameters  bytes
-------------------------------------------------------------------------
dense      kernel                     float32  [3, 2]           6     24
dense      bias                       float32  [2]              2      8
dense/bn   mean (not trainable)       float64  [2]              2     16
           step (not trainable)       int64    []               1      8
-------------------------------------------------------------------------
11 parameters, 8 of them trainable, 56 bytes"""


def _model() -> None:
    with hr.variable_scope("dense"):
        hr.get_variable("kernel", [3, 2])
        with hr.variable_scope("bn"):
            hr.get_variable("mean", [2], hr.float64, trainable=False)
    hr.get_variable("step", [], hr.int64, trainable=False)
    with hr.variable_scope("dense"):
        hr.get_variable("bias", [2])


def test_a_table_by_scope():
    with hr.Graph().as_default():
        _model()
        made = hr.train.model_summary()
        assert [line.split() for line in str(made).splitlines() if "---" not in line] == [
            line.split() for line in TABLE.splitlines() if "---" not in line
        ]
        assert len({len(line) for line in str(made).splitlines() if "---" in line}) == 1
        assert (made.total, made.trainable, made.nbytes) == (11, 8, 56)
        assert made.by_scope() == {"dense": 10, "": 1}
        assert made.by_scope(2) == {"dense": 8, "dense/bn": 2, "": 1}


def test_some_variables_and_unknown_sizes():
    with hr.Graph().as_default():
        fixed = hr.Variable([1.0, 2.0], name="fixed")
        free = hr.Variable([1.0], shape=hr.Shape([None]), name="free")
        assert hr.train.model_summary([fixed]).total == 2
        made = hr.train.model_summary([free])
        assert (made.rows[0].shape, made.rows[0].size, made.total) == ((None,), None, 0)
        assert "[?]" in str(made)
        assert str(hr.train.model_summary([])).endswith(
            "0 parameters, 0 of them trainable, 0 bytes"
        )


def test_the_namespace_of_summaries_is_called():
    with hr.Graph().as_default():
        _model()
        assert hr.train.summary() == hr.train.model_summary()
        assert hr.train.summary(hr.trainable_variables()).total == 8
        assert hr.summary.scalar


def test_refusals():
    with hr.Graph().as_default():
        with pytest.raises(AttributeValueError, match=r"expected variables, got 3"):
            hr.train.model_summary([3])
        with pytest.raises(AttributeValueError, match=r"depth must be at least 1"):
            hr.train.model_summary([]).by_scope(0)
