"""Lookup tables: filled once or by steps, from tensors and files, with and without buckets."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    DTypeError,
    ResourceError,
    ResourceNotFoundError,
    ShapeError,
    UninitializedError,
)

pytestmark = pytest.mark.needs("backend-cpu")

KeyValue = hr.lookup.KeyValueTensorInitializer


def table(keys=("a", "b"), values=(1, 2), default=-1, **options):
    initializer = KeyValue(list(keys), list(values), hr.string, hr.int64)
    return hr.lookup.StaticHashTable(initializer, default, **options)


def ready(fetches, feeds=None):
    with hr.Session() as session:
        session.run(hr.tables_initializer())
        return session.run(fetches, feeds)


# -- static tables


def test_keys_are_mapped_to_values():
    t = table()
    found, size = ready([t.lookup([["a", "z"], ["b", ""]]), t.size()])
    assert found.tolist() == [[1, -1], [2, -1]]
    assert found.dtype == np.int64
    assert size == 2
    assert t.lookup(hr.placeholder(hr.string, [None, 3])).shape.as_list() == [None, 3]
    assert (t.key_dtype, t.value_dtype, t.name) == (hr.string, hr.int64, "hash_table")


def test_dtypes_are_those_of_keys_and_values():
    t = hr.lookup.StaticHashTable(KeyValue([1, 2], ["x", "y"]), "UNK")
    assert ready(t[hr.constant([2, 9])]).tolist() == [b"y", b"UNK"]


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("float32", [1.5, np.nan]),
        ("bfloat16", [1.5, 2.0]),
        ("complex64", [1j, 2]),
        ("bool", [1, 0]),
    ],
)
def test_values_of_any_dtype(dtype, values):
    array = np.array(values).astype(hr.as_dtype(dtype).numpy)
    t = hr.lookup.StaticHashTable(KeyValue(["a", "b"], array), array[1])
    found = ready(t.lookup(["a", "q"]))
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype


def test_empty_keys():
    t = table()
    assert ready(t.lookup(np.zeros((0, 2), object))).shape == (0, 2)


def test_sparse_keys():
    t = table()
    keys = hr.SparseTensor([[0, 1], [2, 0]], ["b", "q"], [3, 2])
    found = ready(t.lookup(keys))
    assert found.values.tolist() == [2, -1]
    assert found.indices.tolist() == [[0, 1], [2, 0]]
    assert found.dense_shape.tolist() == [3, 2]


def test_a_table_is_empty_until_it_is_initialized():
    t = table()
    with hr.Session() as session:
        for fetch in (t.lookup(["a"]), t.size()):
            with pytest.raises(UninitializedError, match=r"run hr.tables_initializer"):
                session.run(fetch)
        session.run(t.initializer)
        assert session.run(t.lookup(["a"])).tolist() == [1]


def test_a_table_is_initialized_once():
    values = hr.placeholder(hr.int64, [2])
    t = hr.lookup.StaticHashTable(KeyValue(["a", "b"], values), -1)
    with hr.Session() as session:
        session.run(t.initializer, {values: [1, 2]})
        session.run(t.initializer, {values: [1, 2]})
        with pytest.raises(ResourceError, match="initialized already, with other content"):
            session.run(t.initializer, {values: [1, 3]})
        assert session.run(t.lookup("b")) == 2


def test_a_key_has_one_value():
    same = table(["a", "a"], [1, 1])
    assert ready(same.size()) == 1
    with hr.Graph().as_default():
        table(["a", "a"], [1, 2])
        with pytest.raises(ResourceError, match="it cannot have 2, too"):
            ready([])


def test_tables_share_content_by_name():
    hr.reset_containers("shared")
    with hr.container("shared"):
        first, second = table(shared_name="t"), table(shared_name="t")
        other = hr.lookup.HashTable(KeyValue(["a"], ["b"]), "", "t")
    with hr.Session() as session:
        session.run(first.initializer)
        assert session.run(second.lookup("b")) == 2
    with hr.Session() as session:
        assert session.run(second.lookup("a")) == 1
        with pytest.raises(ResourceError, match="two ways: value_dtype int64 and string"):
            session.run(other.lookup("a"))
    hr.reset_containers("shared")
    with hr.Session() as session, pytest.raises(UninitializedError, match="not initialized"):
        session.run(second.size())


def test_initializers_are_collected(graph):
    t = table()
    assert graph.get_collection(hr.GraphKeys.TABLE_INITIALIZERS) == [t.initializer]
    assert t.init is t.initializer
    assert hr.initialize_all_tables is hr.tables_initializer


def test_documents_hold_tables(graph):
    fetch = table().lookup(["b"])
    init = hr.tables_initializer()
    copy = hr.Graph.from_document(graph.to_document())
    with hr.Session(graph=copy) as session:
        session.run(copy.get_operation_by_name(init.name))
        assert session.run(copy.get_tensor_by_name(fetch.name)).tolist() == [2]


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda: table().lookup([1]), DTypeError, "keys must be string.*got int32"),
        (lambda: KeyValue(["a"], [1, 2]), ShapeError, "one value per key"),
        (lambda: hr.lookup.StaticHashTable(KeyValue([0.5], [1]), 0), DTypeError, "not float32"),
        (lambda: table(default="x"), DTypeError, "not of dtype int64"),
        (lambda: table(default=[1]), ShapeError, "must be a scalar"),
        (lambda: hr.lookup.StaticHashTable({"a": 1}, 0), DTypeError, "expected an initializer"),
    ],
)
def test_what_makes_no_table_is_refused(build, error, match):
    with pytest.raises(error, match=match):
        build()


# -- tables of files


INDEX = hr.lookup.TextFileIndex


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "vocabulary.txt"
    path.write_bytes(b"a\tx\t1\nb\ty\t2\r\nd\tz\tq")
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "default", "keys", "expected"),
    [
        ((hr.string, INDEX.WHOLE_LINE, hr.int64, INDEX.LINE_NUMBER), -1, ["b\ty\t2", "b"], [1, -1]),
        ((hr.int64, INDEX.LINE_NUMBER, hr.string, 1), "-", [2, 3], [b"z", b"-"]),
        ((hr.string, 0, hr.float32, 2, 2), 0.5, ["a", "b", "d"], [1.0, 2.0, 0.5]),
        ((hr.string, 1, hr.string, 0, 3), "-", ["y", "z"], [b"b", b"d"]),
    ],
)
def test_a_table_is_read_from_a_file(file, arguments, default, keys, expected):
    initializer = hr.lookup.TextFileInitializer(file, *arguments)
    t = hr.lookup.StaticHashTable(initializer, default)
    found = ready(t.lookup(hr.constant(keys, arguments[0])))
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((hr.string, 0, hr.int64, 2), "column 2 of line 3 .* is no int64: b'q'"),
        ((hr.string, 0, hr.int64, 5), "line 1 .* has 3 columns, no column 5"),
        ((hr.string, 0, hr.string, 1, 9), "has 3 lines, expected 9"),
    ],
)
def test_a_file_of_another_kind_is_refused(file, arguments, match):
    default = "" if arguments[2] == hr.string else 0
    hr.lookup.StaticHashTable(hr.lookup.TextFileInitializer(file, *arguments), default)
    with pytest.raises(ResourceError, match=match):
        ready([])


def test_a_file_must_be_there_and_have_no_empty_lines(tmp_path):
    path = tmp_path / "v.txt"
    t = hr.lookup.index_table_from_file(str(path))
    with hr.Session() as session:
        with pytest.raises(ResourceNotFoundError, match="there is no file"):
            session.run(t.initializer)
        path.write_text("a\n\nb")
        with pytest.raises(ResourceError, match=r"line 2 of .* is empty"):
            session.run(t.initializer)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ((hr.string, -2, hr.int32, -1), DTypeError, "value_dtype must be int64"),
        ((hr.float32, -2, hr.int64, -1), DTypeError, "key_dtype must be string"),
        ((hr.string, -1, hr.int64, -2), DTypeError, "key_dtype must be int64"),
        ((hr.int64, -1, hr.int64, -2), DTypeError, "value_dtype must be string"),
        ((hr.string, -3, hr.int64, -1), AttributeValueError, "must be a column"),
        ((hr.string, 0, hr.int64, 1, 0), AttributeValueError, "vocab_size must be positive"),
    ],
)
def test_columns_and_dtypes_must_fit(arguments, error, match):
    with pytest.raises(error, match=match):
        hr.lookup.TextFileInitializer("file", *arguments)


# -- vocabularies


def test_keys_outside_of_a_vocabulary_go_to_buckets():
    t = hr.lookup.StaticVocabularyTable(KeyValue(["a", "b"], [0, 1], hr.string, hr.int64), 3)
    found, size = ready([t.lookup(["a", "b", "c", "d", "e", "f"]), t.size()])
    assert found.tolist() == [0, 1, 3, 4, 3, 2]
    assert size == 5


def test_integers_have_vocabularies_too():
    initializer = KeyValue([10, 20], [0, 1], hr.int64, hr.int64)
    t = hr.lookup.StaticVocabularyTable(initializer, 3)
    assert ready(t.lookup(hr.constant([10, 20, 30, 40], hr.int64))).tolist() == [0, 1, 4, 3]
    narrow = hr.lookup.StaticVocabularyTable(initializer, 3, hr.int32)
    assert ready(narrow.lookup([10, 20, 30, 40])).tolist() == [0, 1, 4, 3]


def test_a_vocabulary_may_be_empty():
    t = hr.lookup.StaticVocabularyTable(None, 3)
    found, size, _ = ready([t.lookup(["a", "b", "c"]), t.size(), t.initializer])
    assert found.tolist() == [0, 1, 1]
    assert size == 3


def test_strong_hashing_takes_a_key():
    spec = hr.lookup.StrongHashSpec([1, 2])
    t = hr.lookup.index_table_from_tensor(["a"], 10, hasher_spec=spec)
    expected = hr.string_to_hash_bucket_strong(["b", "c"], 10, [1, 2])
    found, wanted = ready([t.lookup(["b", "c"]), expected])
    assert (found - 1).tolist() == wanted.tolist()


def test_index_tables(tmp_path):
    path = tmp_path / "words"
    path.write_text("emerson\nlake\npalmer\n")
    words = ["emerson", "lake", "palmer"]
    for t in (
        hr.lookup.index_table_from_file(str(path)),
        hr.lookup.index_table_from_tensor(words),
        hr.lookup.index_table_from_tensor(hr.constant(words), default_value=-1),
    ):
        assert ready(t.lookup(["palmer", "x", "emerson"])).tolist() == [2, -1, 0]
    for t in (
        hr.lookup.index_to_string_table_from_file(str(path)),
        hr.lookup.index_to_string_table_from_tensor(words),
    ):
        assert ready(t.lookup(hr.constant([2, 7], hr.int64))).tolist() == [b"palmer", b"UNK"]
    oov = hr.lookup.index_table_from_file(str(path), num_oov_buckets=1, vocab_size=2)
    assert ready(oov.lookup(["lake", "palmer", "x"])).tolist() == [1, 2, 2]
    numbers = hr.lookup.index_table_from_tensor([10, 20], dtype=hr.int32, num_oov_buckets=1)
    assert ready(numbers.lookup([20, 30])).tolist() == [1, 2]


@pytest.mark.parametrize("dtype", [hr.int32, hr.int64])
def test_whole_lines_may_be_numbers(tmp_path, dtype):
    path = tmp_path / "numbers"
    path.write_text("42\n1\n-1000\n")
    t = hr.lookup.index_table_from_file(str(path), key_dtype=dtype, num_oov_buckets=1)
    assert ready(t.lookup(hr.constant([1, -1000, 11, 42], dtype))).tolist() == [1, 2, 3, 0]
    path.write_text("42\nx\n")
    with pytest.raises(ResourceError, match=r"line 2 of .*numbers' is no int64: b'x'"):
        ready([])


def test_files_of_tables_are_assets(tmp_path):
    path = tmp_path / "words"
    path.write_text("a\nb\n")
    hr.lookup.index_table_from_file(str(path))
    hr.lookup.index_table_from_file(hr.placeholder(hr.string, []))
    (asset,) = hr.get_collection(hr.GraphKeys.ASSET_FILEPATHS)
    assert hr.Session().run(asset) == str(path).encode()


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda: hr.lookup.StaticVocabularyTable(None, 0), AttributeValueError, "must be positive"),
        (
            lambda: hr.lookup.StaticVocabularyTable(KeyValue(["a"], [0]), 1),
            DTypeError,
            "must be int64",
        ),
        (
            lambda: hr.lookup.StaticVocabularyTable(
                KeyValue([1], [0], hr.int64, hr.int64), 1, hr.string
            ),
            DTypeError,
            "do not fit a vocabulary",
        ),
        (
            lambda: hr.lookup.index_table_from_tensor(None),
            AttributeValueError,
            "needs a vocabulary",
        ),
        (lambda: hr.lookup.index_table_from_tensor([1, 2]), DTypeError, "expected string"),
        (lambda: hr.lookup.index_table_from_tensor(["a"], -1), AttributeValueError, ">= 0"),
        (lambda: hr.lookup.index_table_from_file(""), AttributeValueError, "path of a file"),
        (lambda: hr.lookup.index_to_string_table_from_tensor([1]), DTypeError, "string"),
    ],
)
def test_what_makes_no_vocabulary_is_refused(build, error, match):
    with pytest.raises(error, match=match):
        build()


# -- mutable tables


@pytest.mark.parametrize(
    "make",
    [
        lambda: hr.lookup.MutableHashTable(hr.string, hr.int64, -1),
        lambda: hr.lookup.MutableDenseHashTable(hr.string, hr.int64, -1, "", "\n"),
    ],
    ids=["hash", "dense"],
)
def test_steps_change_a_mutable_table(make):
    t = make()
    with hr.Session() as session:
        assert session.run(t.size()) == 0
        session.run(t.insert(["a", "b", "a"], [1, 2, 3]))
        session.run(t.insert([["c"]], [[4]]))
        assert session.run(t.lookup([["a", "z"]])).tolist() == [[3, -1]]
        session.run(t.remove(["b", "q"]))
        keys, values = session.run(t.export())
        assert dict(zip(keys.tolist(), values.tolist(), strict=True)) == {b"a": 3, b"c": 4}
        assert session.run(t.size()) == 2


def test_values_may_have_axes():
    t = hr.lookup.MutableHashTable(hr.int64, hr.float32, [0.0, 1.0])
    with hr.Session() as session:
        session.run(t.insert(hr.constant([3], hr.int64), [[7.0, 8.0]]))
        found = session.run(t.lookup(hr.constant([[3, 4]], hr.int64)))
        assert found.tolist() == [[[7, 8], [0, 1]]]
        keys, values = session.run(t.export())
        assert (keys.tolist(), values.tolist()) == ([3], [[7, 8]])
        values = hr.placeholder(hr.float32)
        with pytest.raises(ShapeError, match=r"shape \[1, 2\], got \[1\]"):
            session.run(t.insert(hr.constant([3], hr.int64), values), {values: [7.0]})
    with pytest.raises(ShapeError, match=r"must have shape \[1, 2\]"):
        t.insert(hr.constant([3], hr.int64), [7.0])


def test_what_a_step_inserted_is_kept_from_later_changes_of_the_array():
    t = hr.lookup.MutableHashTable(hr.int64, hr.float32, [0.0])
    fed = np.ones((1, 1), np.float32)
    values = hr.placeholder(hr.float32, [1, 1])
    with hr.Session() as session:
        session.run(t.insert(hr.constant([3], hr.int64), values), {values: fed})
        fed[:] = 9
        assert session.run(t.lookup(hr.constant([3], hr.int64))).tolist() == [[1]]


def test_reserved_keys_are_refused():
    t = hr.lookup.MutableDenseHashTable(hr.int64, hr.int64, -1, 0, -5)
    with hr.Session() as session:
        for build in (t.lookup, t.remove, lambda keys: t.insert(keys, [1])):
            with pytest.raises(ResourceError, match="reserves 0 as empty_key"):
                session.run(build(hr.constant([0], hr.int64)))
    with pytest.raises(AttributeValueError, match="must be different"):
        hr.lookup.MutableDenseHashTable(hr.int64, hr.int64, -1, 0, 0)
    with pytest.raises(AttributeValueError, match="power of two"):
        hr.lookup.MutableDenseHashTable(hr.int64, hr.int64, -1, 0, 1, 3)


def test_static_tables_are_not_changed():
    from headrace.ops.lookup import table_insert, table_remove

    t = table()
    for op in (
        table_insert(t.handle, ["c"], hr.constant([1], hr.int64)),
        table_remove(t.handle, ["a"]),
    ):
        with pytest.raises(ResourceError, match="it is static"):
            ready(op)


def test_threads_insert_at_the_same_time():
    t = hr.lookup.MutableHashTable(hr.int64, hr.int64, -1)
    keys = hr.placeholder(hr.int64, [None])
    insert, size = t.insert(keys, keys), t.size()
    with hr.Session() as session:

        def fill(start):
            for i in range(20):
                session.run(insert, {keys: np.arange(50) + 1000 * start + 50 * i})

        threads = [threading.Thread(target=fill, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert session.run(size) == 4000
