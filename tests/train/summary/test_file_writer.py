"""Writing events: what is in the files, and what becomes of a disk that refuses them."""

from __future__ import annotations

import errno
import gc
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace import errors
from headrace.extend.runtime import join_cluster
from headrace_train.summary import event_file
from headrace_train.summary.event_writer import EventWriter
from tests.children import run_program
from tests.waiting import wait_until

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.timeout(60)]


def scalar(tag="a", value=1.0):
    return hr.Summary(value=[hr.Summary.Value(tag=tag, simple_value=value)])


def files_in(folder):
    return sorted(Path(folder).iterdir())


def events_in(folder):
    return [event for path in files_in(folder) for event in hr.train.summary_iterator(path)]


def kinds_in(folder):
    return [event.WhichOneof("what") for event in events_in(folder)]


def test_a_file_begins_with_its_version_and_the_graph(tmp_path, graph):
    hr.constant(1.0, name="c")
    before = time.time()
    writer = hr.summary.FileWriter(tmp_path / "new" / "logs", graph)
    writer.add_session_log(hr.SessionLog(status=hr.SessionLog.START), 3)
    writer.close()
    events = events_in(tmp_path / "new" / "logs")
    assert [event.WhichOneof("what") for event in events] == [
        *("file_version", "graph_def", "meta_graph_def", "session_log"),
    ]
    assert events[0].file_version == "brain.Event:2"
    assert [node.name for node in hr.GraphDef.FromString(events[1].graph_def).node] == ["c"]
    meta = hr.MetaGraphDef.FromString(events[2].meta_graph_def)
    assert [node.name for node in meta.graph_def.node] == ["c"]
    assert (events[3].step, events[3].session_log.status) == (3, hr.SessionLog.START)
    assert all(before - 1 < event.wall_time < time.time() + 1 for event in events)
    (path,) = files_in(tmp_path / "new" / "logs")
    assert path.name.startswith("events.out.tfevents.")
    assert writer.get_logdir() == str(tmp_path / "new" / "logs")


def test_what_a_step_returns_is_written(tmp_path):
    x = hr.placeholder(hr.float32, [])
    hr.summary.scalar("x", x)
    hr.summary.histogram("h", x * hr.ones([3]))
    merged = hr.summary.merge_all()
    with (
        hr.Session() as session,
        hr.summary.FileWriter(tmp_path, filename_suffix=".mine") as writer,
    ):
        for step in range(3):
            writer.add_summary(session.run(merged, {x: step}), np.int64(step))
    found = [event for event in events_in(tmp_path) if event.WhichOneof("what") == "summary"]
    assert [event.step for event in found] == [0, 1, 2]
    assert [event.summary.value[0].simple_value for event in found] == [0, 1, 2]
    assert [event.summary.value[1].histo.num for event in found] == [3, 3, 3]
    assert files_in(tmp_path)[0].suffix == ".mine"


def test_metadata_are_written_once_for_each_tag(tmp_path):
    told = hr.summary.text("notes", hr.constant(b"hello"))
    with hr.Session() as session, hr.summary.FileWriter(tmp_path) as writer:
        given = hr.Summary.FromString(session.run(told))
        writer.add_summary(given, 0)
        writer.add_summary(given.SerializeToString(), 1)
    assert given.value[0].HasField("metadata")
    values = [event.summary.value[0] for event in events_in(tmp_path)[1:]]
    assert [value.HasField("metadata") for value in values] == [True, False]
    assert hr.make_ndarray(values[1].tensor).item() == b"hello"


def test_a_graph_comes_as_a_graph_or_as_a_message(tmp_path, graph):
    hr.constant(1.0, name="c")
    with hr.summary.FileWriter(tmp_path) as writer:
        writer.add_graph(graph, 7)
        writer.add_graph(None, graph_def=hr.GraphDef(node=[hr.NodeDef(name="d")]))
        writer.add_meta_graph(hr.MetaGraphDef())
        for wrong in (None, 3):
            with pytest.raises(errors.DTypeError, match="the graph: a Graph or must be a GraphDef"):
                writer.add_graph(wrong)
        with pytest.raises(errors.AttributeValueError, match="Please pass only graph"):
            writer.add_graph(graph, graph_def=hr.GraphDef())
        with pytest.raises(
            errors.DTypeError, match="meta_graph_def must be a MetaGraphDef, got int"
        ):
            writer.add_meta_graph(3)
    events = events_in(tmp_path)
    assert [event.step for event in events] == [0, 7, 0, 0]
    assert [node.name for node in hr.GraphDef.FromString(events[2].graph_def).node] == ["d"]


def test_measurements_of_a_step_have_a_tag_of_their_own(tmp_path):
    with hr.summary.FileWriter(tmp_path) as writer:
        writer.add_run_metadata(hr.RunMetadata(), "step 1", 1)
        with pytest.raises(errors.AttributeValueError, match=r"tag was already used.*'step 1'"):
            writer.add_run_metadata(hr.RunMetadata(), "step 1", 2)
        with pytest.raises(errors.DTypeError, match="run_metadata must be a RunMetadata"):
            writer.add_run_metadata(3, "step 2")
        writer.add_run_metadata(hr.RunMetadata(), "step 2")
    assert [event.tagged_run_metadata.tag for event in events_in(tmp_path)[1:]] == [
        "step 1",
        "step 2",
    ]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda w: w.add_summary("text"),
            errors.DTypeError,
            "the summary must be a Summary, got str",
        ),
        (lambda w: w.add_summary(b"junk"), errors.DataLossError, "the summary is no serialized"),
        (lambda w: w.add_summary(scalar(), "x"), errors.DTypeError, "global_step is a number, got"),
        (lambda w: w.add_session_log(3), errors.DTypeError, "log must be a SessionLog, got int: 3"),
        (lambda w: w.add_event(3), errors.DTypeError, "the event must be a Event, got int: 3"),
    ],
    ids=["text", "bytes", "step", "log", "event"],
)
def test_what_is_no_event_is_refused_and_others_follow(tmp_path, call, error, message):
    with hr.summary.FileWriter(tmp_path) as writer:
        with pytest.raises(error, match=message):
            call(writer)
        writer.add_event(hr.Event(step=5, summary=scalar()))
    assert [event.step for event in events_in(tmp_path)] == [0, 5]


def test_writers_of_one_session_and_folder_share_a_file(tmp_path):
    def tags(path):
        found = [*hr.train.summary_iterator(path)]
        return [event.summary.value[0].tag for event in found[1:]]

    folder, other = tmp_path / "a", tmp_path / "b"
    with hr.Session() as session, hr.Session() as another:
        first = hr.summary.FileWriter(folder, session=session)
        first.add_summary(scalar("one"), 1)
        second = hr.summary.FileWriter(str(folder), session=session)
        second.add_summary(scalar("two"), 2)
        writers = [
            hr.summary.FileWriter(other, session=session),
            hr.summary.FileWriter(folder, session=another, filename_suffix=".another"),
            hr.summary.FileWriter(folder, filename_suffix=".alone"),
        ]
        for number, writer in enumerate(writers):
            writer.add_summary(scalar(str(number)))
            writer.flush()
        first.close()
        first.close()
        second.add_summary(scalar("three"), 3)
        second.flush()
        told = sorted(tags(path) for path in files_in(folder))
        assert told == [["1"], ["2"], ["one", "two", "three"]]
        assert [tags(path) for path in files_in(other)] == [["0"]]
        second.close()
        time.sleep(1.1)  # names of files have seconds
        first.reopen()
        first.add_summary(scalar("four"))
        first.close()
        assert [t for path in files_in(folder) for t in tags(path) if t == "four"] == ["four"]
        assert len(files_in(folder)) == 4
        for writer in writers:
            writer.close()


def test_a_file_that_is_shared_is_closed_with_the_last_writer_that_is_dropped(tmp_path):
    session = hr.Session()
    writers = [hr.summary.FileWriter(tmp_path, session=session) for _ in range(2)]
    writers[0].add_summary(scalar("one"))
    del writers[0]
    gc.collect()
    writers[0].add_summary(scalar("two"))
    session.close()
    del session
    del writers[0]
    gc.collect()
    assert len(events_in(tmp_path)) == 3


def test_a_writer_is_shared_with_sessions_only(tmp_path):
    with pytest.raises(TypeError, match="session must be a Session, got 'fast'"):
        hr.summary.FileWriter(tmp_path, session="fast")
    assert not files_in(tmp_path)


def test_a_closed_writer_warns_and_a_reopened_one_goes_on_in_another_file(tmp_path):
    writer = hr.summary.FileWriter(tmp_path)
    writer.add_summary(scalar(), 1)
    writer.close()
    writer.close()
    for call in (
        writer.flush,
        lambda: writer.add_summary(scalar(), 2),
        lambda: writer.add_event(hr.Event()),
    ):
        with pytest.warns(UserWarning, match="Attempting to use a closed FileWriter"):
            call()
    writer.reopen()
    writer.reopen()
    writer.add_summary(scalar(), 3)
    writer.close()
    assert len(files_in(tmp_path)) == 2
    assert [event.step for event in events_in(tmp_path)] == [0, 1, 0, 3]


def test_many_threads_write_to_one_file(tmp_path):
    writer = hr.summary.FileWriter(tmp_path, max_queue=3)

    def work(worker):
        for step in range(200):
            writer.add_summary(scalar(str(worker)), step)

    threads = [threading.Thread(target=work, args=[i]) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    writer.close()
    found = [(e.summary.value[0].tag, e.step) for e in events_in(tmp_path)[1:]]
    assert len(found) == 800
    # In each thread's own order.
    assert sorted(found, key=lambda item: item[0]) == [
        (str(i), s) for i in range(4) for s in range(200)
    ]


def test_the_first_event_is_written_at_once_and_others_when_it_is_time(tmp_path):
    writer = hr.summary.FileWriter(tmp_path, max_queue=100, flush_secs=0.2)
    writer.add_summary(scalar(), 1)
    wait_until(lambda: len(events_in(tmp_path)) >= 2, within_s=20.0)
    writer.add_summary(scalar(), 2)
    wait_until(lambda: len(events_in(tmp_path)) >= 3, within_s=20.0)
    writer.close()


def test_events_wait_until_somebody_flushes(tmp_path):
    writer = hr.summary.FileWriter(tmp_path, max_queue=0, flush_secs=1000)
    writer.add_summary(scalar(), 0)
    writer.flush()
    for step in range(1, 50):
        writer.add_summary(scalar(), step)
    assert len(events_in(tmp_path)) == 2
    writer.flush()
    assert len(events_in(tmp_path)) == 51
    writer.close()


def test_a_writer_that_is_dropped_writes_what_waits(tmp_path):
    writer = hr.summary.FileWriter(tmp_path, max_queue=0, flush_secs=1000)
    for step in range(20):
        writer.add_summary(scalar(), step)
    del writer
    gc.collect()
    assert len(events_in(tmp_path)) == 21


PROGRAM = """
import os, sys, time
import headrace as hr
writer = hr.summary.FileWriter(sys.argv[1], flush_secs=1000, max_queue=0)
for step in range(100):
    writer.add_summary(hr.Summary(value=[hr.Summary.Value(tag="a", simple_value=step)]), step)
if sys.argv[2] == "killed":
    writer.flush()
    writer.add_summary(hr.Summary(), 100)
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize(("how", "code"), [("left", 0), ("killed", -9)])
def test_the_file_is_whole_when_the_process_ends(tmp_path, how, code):
    done = run_program(PROGRAM, tmp_path, how, check=False)
    assert done.returncode == code, done.stderr
    steps = [event.step for event in events_in(tmp_path)[1:]]
    assert steps == list(range(100))


# -- the disk


def test_a_folder_that_cannot_be_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        errors.FailedPreconditionError, match=r"cannot write events .*file' is not a"
    ):
        hr.summary.FileWriter(tmp_path / "file")
    with pytest.raises(errors.FailedPreconditionError, match="cannot write events to the folder"):
        hr.summary.FileWriter(tmp_path / "file" / "below")
    with pytest.raises(errors.NotFoundError, match="cannot write events to the folder '/proc/no"):
        hr.summary.FileWriter("/proc/no/where")


class Disk:
    """Writes for ``os.write`` until it is full."""

    def __init__(self, monkeypatch):
        self.room = None
        self.stalled = threading.Event()
        self.stalled.set()
        self._write = os.write
        monkeypatch.setattr(event_file.os, "write", self.write)

    def write(self, descriptor, data):
        assert self.stalled.wait(30)
        if self.room is None:
            return self._write(descriptor, data)
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = self._write(descriptor, bytes(data)[: self.room])
        self.room -= written
        return written


@pytest.fixture
def disk(monkeypatch):
    return Disk(monkeypatch)


def add_until_told(add):
    for step in range(100):
        add(step)
        time.sleep(0.02)


def test_a_full_disk_is_told_and_nothing_is_lost_when_it_has_room_again(tmp_path, disk):
    writer = hr.summary.FileWriter(tmp_path, max_queue=0, flush_secs=1000)
    writer.add_summary(scalar(), 0)
    writer.flush()
    for step in range(1, 10):
        writer.add_summary(scalar(), step)
    # Room for half of it: no part of a record may stay.
    disk.room = 100
    for _ in range(2):
        with pytest.raises(
            errors.ResourceExhaustedError, match=r"cannot write events to .*No space"
        ):
            writer.flush()
        assert [event.step for event in events_in(tmp_path)] == [0, 0]
    disk.room = None
    writer.add_summary(scalar(), 10)
    writer.flush()
    assert [event.step for event in events_in(tmp_path)[1:]] == list(range(11))
    writer.close()


def test_who_adds_an_event_is_told_of_a_full_disk(tmp_path, disk):
    writer = hr.summary.FileWriter(tmp_path, max_queue=1, flush_secs=0)
    disk.room = 0
    with pytest.raises(errors.ResourceExhaustedError, match="No space left on device"):
        add_until_told(lambda step: writer.add_summary(scalar(), step))
    disk.room = None
    writer.close()
    steps = [event.step for event in events_in(tmp_path)[1:]]
    assert steps == list(range(len(steps)))
    assert steps


def test_closing_says_how_much_is_lost(tmp_path, disk):
    writer = hr.summary.FileWriter(tmp_path, max_queue=0, flush_secs=1000)
    writer.add_summary(scalar(), 0)
    writer.flush()
    for step in range(7):
        writer.add_summary(scalar(), step)
    disk.room = 0
    with pytest.raises(errors.ResourceExhaustedError, match=r"No space.*; 7 events are lost"):
        writer.close()
    writer.close()
    assert [event.step for event in events_in(tmp_path)] == [0, 0]


def test_a_file_that_cannot_begin_is_no_file(tmp_path, disk):
    disk.room = 3
    with pytest.raises(errors.ResourceExhaustedError, match="cannot write events to"):
        hr.summary.FileWriter(tmp_path)
    assert not files_in(tmp_path)


def test_a_disk_that_takes_nothing_ends_in_an_error(tmp_path, disk):
    writer = EventWriter(tmp_path, 2, 0.0, "", patience_s=0.3)
    disk.stalled.clear()
    with pytest.raises(errors.DeadlineExceededError, match=r"took nothing for 0\.3 s"):
        add_until_told(lambda step: writer.add(b""))
    with pytest.raises(errors.DeadlineExceededError, match=r"took nothing for 0\.3 s"):
        writer.flush()
    with pytest.raises(errors.DeadlineExceededError, match=r"took nothing for 0\.3 s"):
        writer.close()
    disk.stalled.set()


def test_a_file_that_was_deleted_is_begun_anew(tmp_path, caplog):
    writer = hr.summary.FileWriter(tmp_path / "logs")
    writer.add_summary(scalar(), 1)
    writer.flush()
    (path,) = files_in(tmp_path / "logs")
    path.unlink()
    path.parent.rmdir()
    writer.add_summary(scalar(), 2)
    writer.close()
    assert [event.step for event in events_in(tmp_path / "logs")] == [0, 2]
    assert "was deleted; its events are lost" in caplog.text


# -- who writes


def test_of_a_job_the_chief_writes(tmp_path, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    with hr.summary.FileWriter(tmp_path / "other") as writer:
        writer.add_summary(scalar(), 1)
        writer.flush()
    assert not (tmp_path / "other").exists()
    leave = join_cluster(lambda: True)
    with hr.summary.FileWriter(tmp_path / "chief") as writer:
        writer.add_summary(scalar(), 1)
    leave()
    leave()
    assert kinds_in(tmp_path / "chief") == ["file_version", "summary"]
    monkeypatch.setenv("HEADRACE_SUMMARY_RANKS", "all")
    hr.summary.FileWriter(tmp_path / "all").close()
    assert kinds_in(tmp_path / "all") == ["file_version"]


def test_a_cluster_says_who_is_its_chief(tmp_path, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    leave = join_cluster(lambda: False)
    try:
        hr.summary.FileWriter(tmp_path / "other").close()
    finally:
        leave()
    hr.summary.FileWriter(tmp_path / "alone").close()
    assert [path.name for path in files_in(tmp_path)] == ["alone"]


def test_a_process_that_becomes_the_chief_writes_from_then_on(tmp_path):
    chief = False
    leave = join_cluster(lambda: chief)
    try:
        with hr.summary.FileWriter(tmp_path / "run") as writer:
            writer.add_summary(scalar(), 1)
            writer.flush()
            assert files_in(tmp_path) == []
            chief = True
            writer.add_summary(scalar(), 2)
    finally:
        leave()
    assert kinds_in(tmp_path / "run") == ["file_version", "summary"]


# -- the cache


def test_the_cache_has_one_writer_for_each_folder(tmp_path, graph):
    hr.constant(1.0, name="c")
    cache = hr.summary.FileWriterCache
    first = cache.get(str(tmp_path / "a"))
    assert cache.get(tmp_path / "a") is first
    assert cache.get(str(tmp_path / "b")) is not first
    first.add_summary(scalar(), 1)
    cache.clear()
    assert kinds_in(tmp_path / "a") == ["file_version", "graph_def", "meta_graph_def", "summary"]
    other = cache.get(str(tmp_path / "a"))
    assert other is not first
    cache.clear()


# -- reading


def test_reading_what_is_no_file_of_events_is_refused(tmp_path):
    with pytest.raises(errors.NotFoundError, match="nothing"):
        list(hr.train.summary_iterator(str(tmp_path / "nothing")))
    (tmp_path / "junk").write_bytes(b"x" * 100)
    with pytest.raises(errors.DataLossError, match="junk"):
        list(hr.train.summary_iterator(tmp_path / "junk"))
    with hr.io.TFRecordWriter(tmp_path / "records") as records:
        records.write(b"\xff\xff")
    with pytest.raises(
        errors.DataLossError, match=r"the record at byte 0 of .* is no serialized Event"
    ):
        list(hr.train.summary_iterator(tmp_path / "records"))


def test_of_a_file_that_was_cut_short_what_is_whole_is_read(tmp_path):
    with hr.summary.FileWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_summary(scalar(), step)
    (path,) = files_in(tmp_path)
    path.write_bytes(path.read_bytes()[:-3])
    found = []
    with pytest.raises(errors.DataLossError, match="record"):
        found.extend(event.step for event in hr.train.summary_iterator(path))
    read = hr.train.summary_iterator(path)
    assert [next(read).step for _ in range(3)] == [0, 0, 1]


def test_descriptions_are_read_from_nodes():
    node = hr.NodeDef(op="TensorSummary")
    node.attr["description"].s = b'{"typeHint": "hint"}'
    found = hr.summary.get_summary_description(node)
    assert found == hr.summary.SummaryDescription(type_hint="hint")
    with pytest.raises(errors.AttributeValueError, match="get_summary_description on MatMul"):
        hr.summary.get_summary_description(hr.NodeDef(op="MatMul"))
    node.attr["description"].s = b"junk"
    with pytest.raises(errors.DataLossError, match="is no SummaryDescription in JSON"):
        hr.summary.get_summary_description(node)
