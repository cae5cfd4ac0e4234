"""Readers: what they make of files, one record after the other, and in which order."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import pytest

import headrace as hr
from headrace import errors

pytestmark = [pytest.mark.needs("backend-cpu", "train"), pytest.mark.usefixtures("graph")]

ROWS = json.loads((Path(__file__).parent / "tables" / "readers.json").read_text())["reads"]


def work_queue(session, files, capacity=20, closed=True):
    queue = hr.train.FIFOQueue(capacity, hr.string, [[]])
    if files:
        session.run(queue.enqueue_many([files]))
    if closed:
        session.run(queue.close())
    return queue


MESSAGES = {
    "OutOfRangeError": "closed",
    "NotFoundError": "cannot read .*: No such file",
    "DataLossError": "is damaged|is cut short|is no GZIP data",
}


@pytest.mark.parametrize("row", ROWS, ids=[f"{i}-{row['reader']}" for i, row in enumerate(ROWS)])
def test_readers_do_what_tensorflows_do(files, row):
    arguments = dict(row["arguments"])
    if "options" in arguments:
        arguments["options"] = hr.io.TFRecordOptions(arguments["options"])
    names = row["files"]
    if row["reader"] != "IdentityReader":
        names = [os.fsencode(files / name) for name in names]
    reader = getattr(hr, row["reader"])(**arguments)
    with hr.Session() as session:
        queue = work_queue(session, names)
        for limit, expected in zip(row["steps"], row["found"], strict=True):
            made = reader.read(queue) if limit is None else reader.read_up_to(queue, limit)
            if isinstance(expected, dict):
                family = expected["error"]
                with pytest.raises(getattr(errors, family), match=MESSAGES[family]):
                    session.run(made)
                continue
            keys, values = session.run(made)
            if limit is None:
                keys, values = [keys], [values]
            found = [key.decode("latin-1").replace(f"{files}/", "") for key in keys]
            assert [found, [value.decode("latin-1") for value in values]] == expected
        counts = [reader.num_records_produced(), reader.num_work_units_completed()]
        assert session.run(counts) == row["counts"]


def test_shapes_and_names_are_tensorflows(files):
    queue = hr.train.FIFOQueue(2, hr.string, [[]])
    reader = hr.TextLineReader(name="lines")
    key, value = reader.read(queue, name="one")
    keys, values = reader.read_up_to(queue.queue_ref, 3)
    assert (key.shape, value.shape) == ([], [])
    assert keys.shape.as_list() == values.shape.as_list() == [None]
    assert (key.op.name, value.dtype) == ("one", hr.string)
    assert isinstance(reader, hr.ReaderBase)
    assert reader.reader_ref.op.name == "lines"
    assert not reader.supports_serialize
    assert repr(reader) == "<TextLineReader 'lines'>"
    assert reader.num_records_produced().dtype == hr.int64


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: hr.TextLineReader("x"), "skip_header_lines must be int, got 'x'"),
        (lambda: hr.FixedLengthRecordReader(3, encoding=3), "encoding must be str, got 3"),
        (lambda: hr.IdentityReader().read("q"), "a queue, or the handle to one, got 'q'"),
    ],
)
def test_arguments_of_another_kind_are_type_errors(build, match):
    with pytest.raises(errors.ArgumentTypeError, match=match) as caught:
        build()
    assert isinstance(caught.value, TypeError)


def test_records_are_named_tuples_and_nodes_have_tensorflows_names():
    queue = hr.train.FIFOQueue(2, hr.string, [[]])
    reader = hr.TextLineReader()
    read, several = reader.read(queue), reader.read_up_to(queue, 2)
    assert (read._fields, several._fields) == (("key", "value"), ("keys", "values"))
    made = [reader.reader_ref, read.key, read.value, several.keys, several.values]
    made += [reader.num_records_produced(), reader.num_work_units_completed()]
    assert [tensor.name for tensor in [*made, reader.serialize_state()]] == [
        "TextLineReaderV2:0",
        "ReaderReadV2:0",
        "ReaderReadV2:1",
        "ReaderReadUpToV2:0",
        "ReaderReadUpToV2:1",
        "ReaderNumRecordsProducedV2:0",
        "ReaderNumWorkUnitsCompletedV2:0",
        "ReaderSerializeStateV2:0",
    ]
    assert [reader.restore_state("").name, reader.reset().name] == [
        "ReaderRestoreStateV2",
        "ReaderResetV2",
    ]
    kinds = [hr.WholeFileReader(), hr.IdentityReader("nm"), hr.IdentityReader("nm")]
    kinds += [hr.TFRecordReader(), hr.FixedLengthRecordReader(3), hr.IdentityReader()]
    assert [kind.reader_ref.name for kind in kinds] == [
        "WholeFileReaderV2:0",
        "nm:0",
        "nm_1:0",
        "TFRecordReaderV2:0",
        "FixedLengthRecordReaderV2:0",
        "IdentityReaderV2:0",
    ]


# -- bad input


def test_a_damaged_record_is_told_with_file_and_place(files):
    with hr.Session() as session:
        queue = work_queue(session, [os.fsencode(files / "r.data"), os.fsencode(files / "r")])
        reader = hr.TFRecordReader()
        read = reader.read(queue)
        session.run(read)
        session.run(read)
        message = r"record 2 of '.*r\.data', at byte 35, is damaged"
        for _ in range(3):
            with pytest.raises(errors.DataLossError, match=message):
                session.run(read)
        session.run(reader.reset())
        assert session.run(read[1]) == b"one"


def test_a_file_that_vanishes_fails_one_read(files, tmp_path):
    gone = tmp_path / "gone.txt"
    gone.write_bytes(b"1\n2\n")
    with hr.Session() as session:
        queue = work_queue(session, [os.fsencode(gone)] * 2 + [os.fsencode(files / "b.txt")])
        reader = hr.TextLineReader()
        read = reader.read(queue)[1]
        assert session.run(read) == b"1"
        gone.unlink()
        # It is open.
        assert session.run(read) == b"2"
        with pytest.raises(errors.NotFoundError, match=r"cannot read '.*gone\.txt': No such file"):
            session.run(read)
        assert session.run(read) == b"h1"


def test_a_directory_is_no_file(files):
    with hr.Session() as session:
        for reader in (hr.TextLineReader(), hr.WholeFileReader(), hr.TFRecordReader()):
            queue = work_queue(session, [os.fsencode(files)])
            with pytest.raises(errors.FailedPreconditionError, match="Is a directory"):
                session.run(reader.read(queue))


@pytest.mark.parametrize(
    ("dtypes", "shapes", "element", "message"),
    [
        (hr.int32, [[]], 1, "takes its work from a queue of one component, a string; queue .* has"),
        ([hr.string, hr.string], [[], []], ["a", "b"], "queue of one component"),
        (hr.string, [[2]], [["a", "b"]], r"a piece of work is one string, queue .* shape \[2\]"),
    ],
)
def test_work_is_one_string(dtypes, shapes, element, message):
    queue = hr.train.FIFOQueue(3, dtypes, shapes)
    # A handle does not say what its queue holds.
    read = hr.IdentityReader().read(queue.queue_ref)
    with hr.Session() as session:
        session.run(queue.enqueue(element))
        with pytest.raises(errors.InvalidArgumentError, match=message):
            session.run(read)


def test_queues_of_other_elements_are_refused_when_the_graph_is_built():
    queue = hr.train.FIFOQueue(3, hr.int32, [[]], name="numbers")
    with pytest.raises(errors.DTypeError, match="a string; queue 'numbers' has int32"):
        hr.IdentityReader().read(queue)


@pytest.mark.parametrize("kind", ["FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue"])
def test_queues_of_every_kind_give_work(files, kind):
    given = (10, 0) if kind == "RandomShuffleQueue" else (10,)
    queue = getattr(hr, kind)(*given, hr.string, [[]])
    reader = hr.TextLineReader()
    with hr.Session() as session:
        session.run(queue.enqueue(os.fsencode(files / "b.txt")))
        assert session.run(reader.read(queue)[1]) == b"h1"


def test_only_queues_give_work():
    reader = hr.IdentityReader()
    with pytest.raises(errors.AttributeValueError, match="takes its work from a queue"):
        reader.read("file.txt")
    handle = hr.Variable(1.0).handle
    with (
        hr.Session() as session,
        pytest.raises(errors.InvalidArgumentError, match="from a queue, got a VariableCell"),
    ):
        session.run(reader.read(handle))


def test_arguments_that_are_none_are_refused(files):
    with pytest.raises(errors.InvalidArgumentError, match="skip_header_lines must be >= 0, got -1"):
        hr.TextLineReader(-1)
    with pytest.raises(errors.InvalidArgumentError, match="record_bytes must be >= 1, got 0"):
        hr.FixedLengthRecordReader(0)
    with pytest.raises(errors.InvalidArgumentError, match="hop_bytes must be >= 0, got -2"):
        hr.FixedLengthRecordReader(1, 0, 0, -2)
    with pytest.raises(errors.InvalidArgumentError, match="'ZLIB' or 'GZIP', got 'LZ'"):
        hr.FixedLengthRecordReader(1, encoding="LZ")
    reader = hr.TextLineReader()
    with hr.Session() as session:
        queue = work_queue(session, [os.fsencode(files / "a.txt")])
        with pytest.raises(errors.InvalidArgumentError, match="num_records must be >= 0, got -1"):
            session.run(reader.read_up_to(queue, -1))
    with hr.Graph().as_default(), pytest.raises(errors.GraphError, match="to another graph"):
        reader.read(queue)


# -- state


@pytest.mark.parametrize("kind", ["IdentityReader", "WholeFileReader"])
def test_the_state_of_a_reader_is_restored(files, kind):
    names = [os.fsencode(files / name) for name in ("a.txt", "b.txt")]
    first, second = getattr(hr, kind)(), getattr(hr, kind)()
    assert first.supports_serialize
    with hr.Session() as session:
        queue = work_queue(session, names)
        session.run(first.read(queue))
        state = session.run(first.serialize_state())
        # As TensorFlow 1.15 writes it.
        assert state == b"\x08\x01\x10\x01\x18\x01\x22%c%b" % (len(names[0]), names[0])
        session.run(second.restore_state(state))
        counts = [second.num_records_produced(), second.num_work_units_completed()]
        assert session.run(counts) == [1, 1]
        assert session.run(second.read(queue))[0] == names[1]
        session.run(second.reset())
        assert session.run(counts) == [0, 0]
        # One piece of work is begun, and none finished.
        session.run(second.restore_state(b"\x08\x01\x22%c%b" % (len(names[0]), names[0])))
        assert session.run(second.read(queue))[0] == names[0]


NEGATIVE = b"\xff" * 9 + b"\x01"


@pytest.mark.parametrize("state", [b"\xff", b"\x08\x05", b"\x10\x01", b"\x08\x01\x18" + NEGATIVE])
def test_what_is_no_state_is_refused(state):
    restore = hr.IdentityReader().restore_state(state)
    with (
        hr.Session() as session,
        pytest.raises(errors.InvalidArgumentError, match="is no state of a reader"),
    ):
        session.run(restore)


def test_readers_in_the_middle_of_files_have_no_state():
    reader = hr.TextLineReader()
    with hr.Session() as session:
        for use in (reader.serialize_state(), reader.restore_state(b"")):
            with pytest.raises(errors.UnimplementedError, match="cannot be stored: only WholeFile"):
                session.run(use)


# -- waiting


def test_a_read_waits_for_work_and_others_wait_behind_it():
    queue = hr.train.FIFOQueue(10, hr.string, [[]])
    reader = hr.IdentityReader()
    read, added = reader.read(queue)[1], hr.placeholder(hr.string, [None])
    add = queue.enqueue_many([added])
    found, lock = [], threading.Lock()
    with hr.Session() as session:

        def consume():
            for _ in range(5):
                value = session.run(read)
                with lock:
                    found.append(value)

        threads = [threading.Thread(target=consume, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for start in range(0, 20, 2):
            session.run(add, {added: [b"%d" % start, b"%d" % (start + 1)]})
        for thread in threads:
            thread.join(20)
        assert not any(thread.is_alive() for thread in threads)
        assert sorted(map(int, found)) == list(range(20))
        assert session.run(reader.num_records_produced()) == 20


def test_closing_the_queue_ends_all_reads():
    queue = hr.train.FIFOQueue(10, hr.string, [[]])
    read = hr.IdentityReader().read(queue)[1]
    ended = []
    with hr.Session() as session:

        def consume():
            try:
                session.run(read)
            except errors.OutOfRangeError as error:
                ended.append(error)

        threads = [threading.Thread(target=consume, daemon=True) for _ in range(5)]
        for thread in threads:
            thread.start()
        session.run(queue.close())
        for thread in threads:
            thread.join(20)
        assert not any(thread.is_alive() for thread in threads)
    assert len(ended) == 5


def test_closing_the_session_ends_all_reads():
    queue = hr.train.FIFOQueue(10, hr.string, [[]])
    read = hr.IdentityReader().read(queue)[1]
    session, ended = hr.Session(), []

    def consume():
        try:
            session.run(read)
        except errors.HeadraceError as error:
            ended.append(error)

    threads = [threading.Thread(target=consume, daemon=True) for _ in range(5)]
    for thread in threads:
        thread.start()
    while not any(thread.is_alive() for thread in threads):
        pass
    session.close()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert len(ended) == 5


def test_thousands_of_empty_files_are_passed_over(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "full").write_bytes(b"line\n")
    names = [os.fsencode(tmp_path / "empty")] * 3000 + [os.fsencode(tmp_path / "full")]
    reader = hr.TextLineReader()
    with hr.Session() as session:
        queue = work_queue(session, names, capacity=4000)
        assert session.run(reader.read(queue)[1]) == b"line"
        assert session.run(reader.num_work_units_completed()) == 3000


def test_readers_of_one_name_in_a_container_are_one():
    for count in (1, 2):
        with hr.Graph().as_default(), hr.container("shared readers"), hr.Session() as session:
            reader = hr.IdentityReader(name="one")
            queue = work_queue(session, [b"x"], closed=False)
            session.run(reader.read(queue))
            assert session.run(reader.num_records_produced()) == count
    hr.reset_containers("shared readers")
    with hr.Graph().as_default(), hr.container("shared readers"), hr.Session() as session:
        assert session.run(hr.IdentityReader(name="one").num_records_produced()) == 0


def test_lines_may_come_from_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("one\ntwo\n"))
    writer.start()
    reader = hr.TextLineReader()
    with hr.Session() as session:
        read = reader.read(work_queue(session, [os.fsencode(pipe)]))[1]
        assert [session.run(read), session.run(read)] == [b"one", b"two"]
    writer.join(20)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupted_read_is_told_and_the_next_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("headrace.interrupts._PATIENCE_S", 0.2)
    pipe, whole = tmp_path / "pipe", tmp_path / "whole"
    # Nobody writes to it: who opens it waits.
    os.mkfifo(pipe)
    whole.write_text("content")
    main, found = threading.main_thread().ident, []
    reader = hr.WholeFileReader()
    with hr.Session() as session:
        read = reader.read(work_queue(session, [os.fsencode(pipe), os.fsencode(whole)]))[1]

        def wait_behind_it():
            try:
                session.run(read)
            except errors.CancelledError as error:
                found.append(str(error))

        behind = threading.Thread(target=wait_behind_it)
        threading.Timer(0.2, behind.start).start()
        interrupt = threading.Timer(0.6, lambda: signal.pthread_kill(main, signal.SIGINT))
        interrupt.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                session.run(read)
        finally:
            interrupt.join()
        behind.join(20)
        assert len(found) == 1
        assert "was interrupted in" in found[0]
        assert "the rest of it was not read" in found[0]
        assert session.run(read) == b"content"
