"""Records of delimited values: one native pass reads what reading field by field does."""

import random

import numpy as np
import pytest

import headrace as hr
from headrace_cpu import delimited
from headrace_cpu.delimited import DECIMAL, FLOATS, INTEGERS, READ, TEXTS, UNREAD, fields_of
from headrace_cpu.kernels.text_convert import decode_csv

ATTRS = {"field_delim": ",", "use_quote_delim": True, "na_value": "", "select_cols": ()}
NONE = np.zeros(0, np.float32)


def texts(strings):
    made = np.empty(len(strings), object)
    made[:] = strings
    return made


@pytest.fixture(autouse=True)
def loop():
    if delimited._LOOP.address() is None:
        delimited._LOOP.make()
    assert delimited._LOOP.address() is not None


def result(records, defaults, attrs):
    # As the device has it while a step runs.
    with np.errstate(all="ignore"):
        return _result(records, defaults, {**ATTRS, **attrs})


def _result(records, defaults, attrs):
    try:
        return decode_csv(np, texts(records), defaults, **attrs)
    except ValueError as error:
        return str(error)


def both(monkeypatch, records, defaults, **attrs):
    """Return what comes of records, which must be the same in one pass and field by field."""
    found = result(records, defaults, attrs)
    with monkeypatch.context() as patch:
        patch.setattr(delimited, "_FEWEST", 1 << 40)
        expected = result(records, defaults, attrs)
    assert type(found) is type(expected)
    if isinstance(found, str):
        assert found == expected
        return found
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        if one.dtype == object:
            assert one.tolist() == other.tolist()
        else:
            assert one.tobytes() == other.tobytes()
    return found


NUMBERS = [
    *("0", "-0", "+7", "  12 ", "1.", ".5", "-.5", "1e3", "1E-3", "+1.5e+2", "0.1", "1e22", "1e23"),
    *("123456789012345678", "1234567890123456789", "9007199254740993", "0.1234567890123456789"),
    *("1e-22", "1e-23", "3.4e38", "1e39", "1e400", "-1e400", "1e-400", "00012", "0.000", "-0.0"),
    *("2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807", "\t5\v"),
    *("-9223372036854775808", "9223372036854775808", "inf", "-nan", "0x1p3", "1e999999", "8e-5"),
]
WRONG = ["", "x", "1.2.3", "--1", "1e", "e5", "1e+", ".", "+", "-", "1 2", "1_0", "1,", '"3"', " "]


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("number", [*NUMBERS, *WRONG])
def test_each_number_is_read_as_it_would_be_by_itself(monkeypatch, number, dtype):
    for default in (np.zeros(0, dtype), np.full(1, 3, dtype)):
        records = [b"1"] * 40
        records[17] = number.encode()
        both(monkeypatch, records, [default])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_of_many_digits_are_rounded_once(monkeypatch, dtype):
    rng = random.Random(3)
    forms = ["%.3f", "%.9g", "%.17g", "%r", "%.6e", "%.20f"]
    numbers = [
        rng.choice(forms) % (rng.gauss(0, 1) * 10 ** rng.randrange(-9, 10)) for _ in range(3000)
    ]
    (found,) = both(monkeypatch, [n.encode() for n in numbers], [np.zeros(0, dtype)])
    np.testing.assert_array_equal(found, np.array(list(map(float, numbers)), dtype))


PIECES = [
    *("", "a", "ab c", "12", "-3.5", "NA", '"', '""', '"x"', '"a,b"', '"a""b"', '"a\nb"', "\n"),
    *("\r", "é", "x\ny", '"open', 'in"side', '"shut"x', "\0", ",", " 7", "1e5"),
]


@pytest.mark.parametrize("seed", range(40))
def test_records_of_any_form(monkeypatch, seed):
    rng = random.Random(seed)
    columns = rng.randrange(1, 5)
    tame = rng.random() < 0.6
    pieces = [p for p in PIECES if tame is False or p in ("", "12", '"x"', '"a,b"', "NA", "-3")]
    kinds = [
        rng.choice([np.zeros(1, np.int32), texts([b"none"]), texts([]), np.ones(1, np.float32)])
        if rng.random() < 0.3
        else texts([b"-"])
        for _ in range(columns)
    ]
    delim = rng.choice([",", ",", ";", " "])
    records = []
    for _ in range(rng.randrange(40, 90)):
        wide = columns + (rng.choice([-1, 1, 2]) if rng.random() < 0.01 else 0)
        usual = rng.random() < 0.97
        fields = [rng.choice(["12", "7"] if usual else pieces) for _ in range(wide)]
        records.append(delim.join(fields).encode())
    chosen = tuple(sorted(rng.sample(range(columns), rng.randrange(1, columns + 1))))
    attrs = {
        "field_delim": delim,
        "use_quote_delim": rng.random() < 0.7,
        "na_value": rng.choice(["", "NA", "12"]),
    }
    both(monkeypatch, records, kinds, **attrs)
    both(monkeypatch, records, [kinds[i] for i in chosen], **attrs, select_cols=chosen)


def test_the_first_record_that_is_wrong_is_told_of(monkeypatch):
    records = [b"1,a"] * 50
    records[30], records[20], records[40] = b"1", b"x,a", b'1,"'
    defaults = [np.zeros(0, np.int32), texts([])]
    assert both(monkeypatch, records, defaults) == "field 0 of record 20 is no int32: b'x'"
    records[20] = b"1,a"
    assert both(monkeypatch, records, defaults) == "record 30 has 1 fields, expected 2"
    records[30] = b",a"
    text = "field 0 of record 30 is empty, and has no default"
    assert both(monkeypatch, records, defaults) == text
    records[30] = b"1,"
    assert both(monkeypatch, records, defaults).startswith("field 1 of record 30 is empty")
    records[30] = b"1,a"
    assert "a quoted field of record 40 does not end" in both(monkeypatch, records, defaults)
    text = both(monkeypatch, [b"1,2"] * 50, [NONE], select_cols=(2,))
    assert text == "record 0 has 2 fields, no 2"


def test_what_is_usual_is_read_by_the_pass():
    records = [b'1, 2.5 ,a b,"c,d"', b'-7,0.12345678901234567,,""'] * 20
    kinds = [INTEGERS, FLOATS, TEXTS, TEXTS]
    found = fields_of(records, b",", kinds, (), quotes=True)
    assert not found.odd.any()
    assert found.states[0].tolist() == [READ] * 40
    assert found.values[0].tolist() == [1, -7] * 20
    assert found.states[1].tolist() == [READ, DECIMAL] * 20
    assert found.values[1].view(np.float64)[0] == 2.5
    assert found.texts(2, slice(0, 2)) == [b"a b", b""]
    assert found.texts(3, slice(0, 2)) == [b"c,d", b""]
    assert found.equal(2, b"a b").tolist() == [True, False] * 20
    assert found.equal(3, b"").tolist() == [False, True] * 20
    odd = [b"", b"1,x", b'"a""b",1', b"1,2,3", b"7,\n"]
    found = fields_of(odd * 8, b",", [TEXTS, INTEGERS], (), quotes=True)
    assert found.odd.tolist() == [True, False, True, True, True] * 8
    assert found.states[1, 1] == UNREAD


def test_few_fields_are_left_to_their_reader():
    assert fields_of([b"1,2"] * 3, b",", [INTEGERS] * 2, (), quotes=True) is None


def test_records_of_a_matrix_keep_their_shape():
    records = [[f"{10 * i + j},{i / 8},r{j}" for j in range(10)] for i in range(20)]
    columns = hr.decode_csv(records, [[0], [0.0], [""]])
    with hr.Session() as session:
        whole, part, name = session.run(columns)
    np.testing.assert_array_equal(whole, np.arange(200).reshape(20, 10))
    np.testing.assert_array_equal(part, np.repeat(np.arange(20) / 8, 10).reshape(20, 10))
    assert name[3].tolist() == [b"r%d" % j for j in range(10)]
