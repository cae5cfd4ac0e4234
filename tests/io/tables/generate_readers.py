"""Make ``readers.json``: what TensorFlow 1.15 does with files, patterns and readers.

Run with a Python that has TensorFlow 1.15: ``python generate_readers.py``, in this folder. Bytes
are written as text in Latin-1.
"""

import gzip
import json
import os
import tempfile
import zlib

import tensorflow as tf

FILES = {
    "a.txt": b"hello\r\nwor\rld\n\nlast",
    "b.txt": b"h1\nh2\nx\n",
    "c.txt": b"ab\r\r\ncd\r",
    "empty.txt": b"",
    ".hidden": b"",
    "sub/deep/d.txt": b"d",
    "sub/[e.txt": b"",
    "sub/a*b": b"",
    "sub/aXb": b"",
    "sub/]": b"",
    "sub/-": b"",
    "f20": bytes(range(20)),
    "f10": bytes(range(10)),
    "f20.z": zlib.compress(bytes(range(20))),
    "f20.gz": gzip.compress(bytes(range(20))),
}
RECORDS = [b"one", b"", b"three" * 3, bytes(range(256))]
PATTERNS = [
    *("*.txt", "[ab].txt", "[a-b].txt", "[!a].txt", "[^a].txt", "?.txt", "{a,b}.txt", "no*", "*"),
    *(".*", ".h*", "*hidden", "sub", "sub/*", "sub/*/d.txt", "sub/**", "s*/d*/*", "**/d.txt"),
    *("*/", "sub/", "a\\.txt", "[e.txt", "sub/[e.txt", "sub/[[]e.txt", "sub/a\\*b", "sub/a*b"),
    *("sub/[]]", "sub/[!]]", "sub/[a-]", "sub/[[:alpha:]]*", "sub/[[:upper:]]*"),
    *("sub/./a*", "sub/../sub/a*", "a.txt", "nodir/*", "nodir/x", "[]a].txt", "[c-a].txt"),
]
# Reader, arguments, files, and how many records to ask for in each step, None for one alone.
READS = [
    ("TextLineReader", {}, ["a.txt", "empty.txt", "b.txt", "c.txt"], [None] * 10),
    ("TextLineReader", {"skip_header_lines": 2}, ["a.txt", "empty.txt", "b.txt"], [None] * 4),
    ("TextLineReader", {}, ["a.txt", "empty.txt", "b.txt"], [3, 3, 3, 3]),
    ("TextLineReader", {}, ["a.txt"], [0, 0]),
    ("TextLineReader", {}, ["gone", "b.txt"], [None, None]),
    ("WholeFileReader", {}, ["a.txt", "empty.txt", "b.txt"], [None] * 4),
    ("WholeFileReader", {}, ["a.txt", "empty.txt", "b.txt"], [2, 2, 2]),
    ("WholeFileReader", {}, ["gone"], [None]),
    ("IdentityReader", {}, ["x", "y", "z"], [None] * 4),
    ("IdentityReader", {}, ["x", "y", "z"], [2, 2]),
    ("FixedLengthRecordReader", {"record_bytes": 4}, ["f20"], [None] * 6),
    ("FixedLengthRecordReader", {"record_bytes": 4}, ["f10", "f20"], [None] * 5),
    (
        "FixedLengthRecordReader",
        {"record_bytes": 4, "header_bytes": 2, "footer_bytes": 2},
        ["f20"],
        [None] * 5,
    ),
    (
        "FixedLengthRecordReader",
        {"record_bytes": 4, "header_bytes": 2, "footer_bytes": 2, "hop_bytes": 2},
        ["f20"],
        [None] * 8,
    ),
    (
        "FixedLengthRecordReader",
        {"record_bytes": 4, "header_bytes": 2, "footer_bytes": 2, "hop_bytes": 6},
        ["f20"],
        [2, 2, 2],
    ),
    (
        "FixedLengthRecordReader",
        {"record_bytes": 4, "header_bytes": 10, "footer_bytes": 11},
        ["f20", "f20"],
        [None],
    ),
    (
        "FixedLengthRecordReader",
        {"record_bytes": 4, "header_bytes": 1, "footer_bytes": 1, "encoding": "ZLIB"},
        ["f20.z"],
        [None] * 5,
    ),
    (
        "FixedLengthRecordReader",
        {"record_bytes": 4, "header_bytes": 1, "footer_bytes": 1, "encoding": "GZIP"},
        ["f20.gz"],
        [None] * 5,
    ),
    ("TFRecordReader", {}, ["r", "r.empty", "r"], [None] * 9),
    ("TFRecordReader", {}, ["r", "r"], [3, 3, 3]),
    ("TFRecordReader", {"options": "ZLIB"}, ["r.z"], [None] * 5),
    ("TFRecordReader", {"options": "GZIP"}, ["r.gz"], [None] * 5),
    ("TFRecordReader", {"options": "GZIP"}, ["r"], [None] * 2),
    ("TFRecordReader", {}, ["r.gz"], [None] * 2),
    ("TFRecordReader", {}, ["r.data", "r"], [None] * 3),
    ("TFRecordReader", {}, ["r.length", "r"], [None] * 2),
    ("TFRecordReader", {}, ["r.cut", "r"], [None] * 5),
    ("TFRecordReader", {}, ["gone", "r"], [None] * 2),
]


def text(data):
    return data.decode("latin-1")


def family(error):
    return {"error": type(error).__name__}


def make_files(folder):
    for name, content in FILES.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
    records = {"r": None, "r.z": "ZLIB", "r.gz": "GZIP", "r.empty": None}
    for name, compression in records.items():
        with tf.io.TFRecordWriter(os.path.join(folder, name), compression) as writer:
            for record in RECORDS if name != "r.empty" else []:
                writer.write(record)
    whole = open(os.path.join(folder, "r"), "rb").read()
    damaged = {
        "r.data": whole[:47] + b"?" + whole[48:],
        "r.length": b"?" + whole[1:],
        "r.cut": whole[:-3],
    }
    for name, content in damaged.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
    return {
        name: text(open(os.path.join(folder, name), "rb").read())
        for name in [*FILES, *records, *damaged]
    }


def read(session, folder, kind, arguments, files, steps):
    if kind != "IdentityReader":
        files = [os.path.join(folder, name) for name in files]
    given = dict(arguments)
    if "options" in given:
        given["options"] = tf.io.TFRecordOptions(given["options"])
    reader = getattr(tf.compat.v1, kind)(**given)
    queue = tf.queue.FIFOQueue(10, [tf.string], [()])
    session.run(queue.enqueue_many([files]))
    session.run(queue.close())
    found = []
    for limit in steps:
        made = reader.read(queue) if limit is None else reader.read_up_to(queue, limit)
        try:
            keys, values = session.run(made)
        except tf.errors.OpError as error:
            found.append(family(error))
            continue
        if limit is None:
            keys, values = [keys], [values]
        keys = [text(key).replace(folder + "/", "") for key in keys]
        found.append([keys, [text(value) for value in values]])
    counts = [reader.num_records_produced(), reader.num_work_units_completed()]
    return {
        "reader": kind,
        "arguments": arguments,
        "files": [name.replace(folder + "/", "") for name in files],
        "steps": steps,
        "found": found,
        "counts": [int(count) for count in session.run(counts)],
    }


def match(session, folder, pattern):
    try:
        names = session.run(tf.io.matching_files(os.path.join(folder, pattern)))
    except tf.errors.OpError as error:
        return family(error)
    return [text(name).replace(folder + "/", "") for name in names]


def main():
    assert tf.__version__.startswith("1.15"), tf.__version__
    with tempfile.TemporaryDirectory() as folder, tf.compat.v1.Session() as session:
        os.umask(0o022)
        files = make_files(folder)
        table = {
            "made by": "TensorFlow " + tf.__version__,
            "files": files,
            "records": [text(record) for record in RECORDS],
            "patterns": {pattern: match(session, folder, pattern) for pattern in PATTERNS},
            "reads": [read(session, folder, *row) for row in READS],
        }
    with open("readers.json", "w") as file:
        json.dump(table, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
