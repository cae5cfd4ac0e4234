"""Small programs that read checkpoints, for TensorFlow 1.15 and for Headrace alike.

Each takes the library as ``tf``, a function that runs something in a session, and a folder with
the bundles ``everything`` and ``parts`` of ``tests/train/bundles``. It returns what JSON can hold.
"""

from pathlib import Path


def _path(folder, name):
    return str(Path(folder) / name)


def _value(value):
    kind = type(value).__name__.rstrip("_")
    if isinstance(value, bytes):
        return [kind, value.hex()]
    if getattr(value, "dtype", None) is not None and value.dtype.kind == "O":
        return [kind, list(value.shape), [item.hex() for item in value.ravel()]]
    return [kind, list(value.shape), str(value.dtype), value.tobytes().hex()]


def maps(tf, run, folder):
    reader = tf.train.NewCheckpointReader(_path(folder, "parts"))
    shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    assert sorted(shapes) == sorted(dtypes)
    return [[name, shapes[name], dtypes[name].name] for name in sorted(shapes)]


def debug_string(tf, run, folder):
    found = [
        tf.train.NewCheckpointReader(_path(folder, name)).debug_string()
        for name in ("everything", "parts")
    ]
    return [_value(text) for text in found]


def tensors_of_all_kinds(tf, run, folder):
    reader = tf.train.NewCheckpointReader(_path(folder, "everything"))
    names = ["float16/scalar", "bool/scalar", "int64/cube", "complex64/scalar", "float32/empty"]
    names += ["string/scalar", "string/many", "string/empty", "qint8", "odd\0name"]
    return [_value(reader.get_tensor(name)) for name in names]


def names_as_bytes(tf, run, folder):
    reader = tf.train.NewCheckpointReader(_path(folder, "parts").encode())
    return [reader.has_tensor(b"words"), _value(reader.get_tensor(b"words"))]


def has_tensor(tf, run, folder):
    reader = tf.train.NewCheckpointReader(_path(folder, "parts"))
    names = ["words", "words:0", "rows/table", "rows/table/part_0", "global_step"]
    return [reader.has_tensor(name) for name in names]


def tensor_that_is_not_there(tf, run, folder):
    return tf.train.NewCheckpointReader(_path(folder, "parts")).get_tensor("word")


def number_for_a_name(tf, run, folder):
    return tf.train.NewCheckpointReader(_path(folder, "parts")).get_tensor(3)


def number_asked_for(tf, run, folder):
    return tf.train.NewCheckpointReader(_path(folder, "parts")).has_tensor(3)


def no_checkpoint(tf, run, folder):
    return tf.train.NewCheckpointReader(_path(folder, "none"))


def number_for_a_path(tf, run, folder):
    return tf.train.NewCheckpointReader(3)


def none_for_a_path(tf, run, folder):
    return tf.train.NewCheckpointReader(None)


def folder_for_a_checkpoint(tf, run, folder):
    return tf.train.NewCheckpointReader(folder)


def file_that_is_none(tf, run, folder):
    Path(folder, "junk").write_bytes(b"x" * 100)
    return tf.train.NewCheckpointReader(_path(folder, "junk"))


def _damaged(folder, ending, change):
    """Copy the bundle ``parts`` with one file of it changed; return its prefix."""
    endings = [".index", ".data-00000-of-00002", ".data-00001-of-00002"]
    for each in endings:
        data = Path(folder, "parts" + each).read_bytes()
        data = change(data) if each == ending else data
        if data is not None:
            Path(folder, "bad" + each).write_bytes(data)
    return _path(folder, "bad")


def index_that_is_cut_short(tf, run, folder):
    return tf.train.NewCheckpointReader(_damaged(folder, ".index", lambda data: data[:-1]))


def index_that_is_empty(tf, run, folder):
    return tf.train.NewCheckpointReader(_damaged(folder, ".index", lambda data: b""))


def index_that_is_changed(tf, run, folder):
    def change(data):
        return data[:40] + bytes([data[40] ^ 1]) + data[41:]

    return tf.train.NewCheckpointReader(_damaged(folder, ".index", change))


def tensor_that_is_changed(tf, run, folder):
    flipped = _damaged(folder, ".data-00000-of-00002", lambda data: bytes(255 - x for x in data))
    return tf.train.NewCheckpointReader(flipped).get_tensor("rows/table")


def strings_that_are_changed(tf, run, folder):
    flipped = _damaged(folder, ".data-00001-of-00002", lambda data: bytes(255 - x for x in data))
    return tf.train.NewCheckpointReader(flipped).get_tensor("words")


def data_that_are_not_there(tf, run, folder):
    lost = _damaged(folder, ".data-00001-of-00002", lambda data: None)
    reader = tf.train.NewCheckpointReader(lost)
    rest = _value(reader.get_tensor("rows/table"))
    try:
        return reader.get_tensor("words")
    except tf.errors.NotFoundError as error:
        return [rest, "data-00001-of-00002" in str(error)]


def variables_of_a_checkpoint(tf, run, folder):
    return tf.train.list_variables(_path(folder, "parts"))


def variables_of_no_checkpoint(tf, run, folder):
    return tf.train.list_variables(_path(folder, "none"))


def variables_of_an_empty_folder(tf, run, folder):
    Path(folder, "empty").mkdir()
    return tf.train.list_variables(_path(folder, "empty"))


def variables_of_nothing(tf, run, folder):
    return tf.train.list_variables(None)


def variable_by_name(tf, run, folder):
    path = _path(folder, "parts")
    return [_value(tf.train.load_variable(path, n)) for n in ("words:0", "words", "global_step")]


def variable_that_is_not_there(tf, run, folder):
    return tf.train.load_variable(_path(folder, "parts"), "nothing")


def reader_of_an_empty_folder(tf, run, folder):
    Path(folder, "empty").mkdir()
    return tf.train.load_checkpoint(_path(folder, "empty"))


def reader_of_a_checkpoint(tf, run, folder):
    return sorted(tf.train.load_checkpoint(_path(folder, "parts")).get_variable_to_shape_map())


def checkpoints_of_an_empty_folder(tf, run, folder):
    Path(folder, "empty").mkdir()
    asked = []

    def enough():
        asked.append(1)
        return len(asked) == 3

    found = tf.train.checkpoints_iterator(_path(folder, "empty"), 0, 0.01, enough)
    return [list(found), len(asked), list(tf.train.checkpoints_iterator(folder + "x", timeout=0.1))]


# -- initial values


def _saved(tf, folder):
    """Save variables; return the prefix of the checkpoint."""
    with tf.Graph().as_default(), tf.Session() as session:
        for name, values in (
            ("old/w", [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]),
            ("old/b", [1.0, 2.0, 3.0]),
            ("root", 9.0),
            ("emb", [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]),
            ("classes", [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]),
        ):
            tf.Variable(values, name=name)
        tf.Variable(5, name="old/sub/x")
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, _path(folder, "saved"))


def _values(tf, run):
    run(tf.global_variables_initializer())
    return {variable.op.name: run(variable).tolist() for variable in tf.global_variables()}


def _made(tf, **more):
    """Make variables in the scope ``new``: ``w`` and ``b``, or others with their shapes."""
    shapes = dict(more or {"w": [2, 3], "b": [3]})
    with tf.variable_scope("new"):
        return {
            n: tf.get_variable(n, s, initializer=tf.zeros_initializer) for n, s in shapes.items()
        }


def _assigned(assignment_map, **shapes):
    """Return the program that initializes variables by an assignment map."""

    def program(tf, run, folder):
        prefix = _saved(tf, folder)
        made = _made(tf, **shapes)
        asked = assignment_map(made) if callable(assignment_map) else assignment_map
        returned = tf.train.init_from_checkpoint(prefix, asked)
        return [returned, _values(tf, run)]

    return program


def at_the_root(tf, run, folder):
    prefix = _saved(tf, folder)
    tf.get_variable("root", [])
    tf.get_variable("old/w", [2, 3])
    tf.train.init_from_checkpoint(prefix, {"/": "/"})
    return _values(tf, run)


def from_the_root(tf, run, folder):
    prefix = _saved(tf, folder)
    with tf.variable_scope("deep/new"):
        tf.get_variable("root", [])
        tf.get_variable("old/w", [2, 3])
    tf.train.init_from_checkpoint(prefix, {"/": "deep/new/"})
    return _values(tf, run)


def other_dtype(tf, run, folder):
    prefix = _saved(tf, folder)
    tf.get_variable("w", [2, 3], tf.float64)
    tf.train.init_from_checkpoint(prefix, {"old/w": "w"})
    return _values(tf, run)


def variable_without_get_variable(tf, run, folder):
    prefix = _saved(tf, folder)
    plain = tf.Variable([[0.0, 0.0, 0.0]] * 2, name="plain")
    tf.train.init_from_checkpoint(prefix, {"old/w": plain})
    return _values(tf, run)


def name_of_no_get_variable(tf, run, folder):
    prefix = _saved(tf, folder)
    tf.Variable([[0.0, 0.0, 0.0]] * 2, name="plain")
    tf.train.init_from_checkpoint(prefix, {"old/w": "plain"})


def latest_of_a_folder(tf, run, folder):
    _saved(tf, folder)
    _made(tf)
    tf.train.init_from_checkpoint(folder, {"old/": "new/"})
    return _values(tf, run)


def folder_without_checkpoints(tf, run, folder):
    _made(tf)
    Path(folder, "empty").mkdir()
    tf.train.init_from_checkpoint(_path(folder, "empty"), {"old/": "new/"})


def initialize_from_nothing(tf, run, folder):
    _made(tf)
    tf.train.init_from_checkpoint(_path(folder, "none"), {"old/": "new/"})


def initial_values(tf, run, folder):
    prefix = _saved(tf, folder)
    made = _made(tf)
    tf.train.init_from_checkpoint(prefix, {"old/": "new/"})
    first = tf.Variable(made["b"].initialized_value() * 2, name="double")
    return [run(made["w"].initial_value).tolist(), first.shape.as_list(), _values(tf, run)]


def other_variables_keep_their_values(tf, run, folder):
    prefix = _saved(tf, folder)
    made = _made(tf)
    run(tf.global_variables_initializer())
    run(made["b"].assign([7.0, 7.0, 7.0]))
    tf.train.init_from_checkpoint(prefix, {"old/w": "new/w"})
    run(made["w"].initializer)
    return [run(made["w"]).tolist(), run(made["b"]).tolist()]


def _divided(tf, name, shape, count, **options):
    with tf.variable_scope("new", partitioner=tf.fixed_size_partitioner(count)):
        return tf.get_variable(name, shape, initializer=tf.zeros_initializer, **options)


def parts_of_a_whole(tf, run, folder):
    prefix = _saved(tf, folder)
    _divided(tf, "emb", [4, 2], 3)
    tf.train.init_from_checkpoint(prefix, {"emb": "new/emb"})
    return _values(tf, run)


def parts_in_a_list(tf, run, folder):
    prefix = _saved(tf, folder)
    parts = list(_divided(tf, "emb", [4, 2], 2))
    tf.train.init_from_checkpoint(prefix, {"emb": parts})
    return _values(tf, run)


def parts_in_a_scope(tf, run, folder):
    prefix = _saved(tf, folder)
    _divided(tf, "emb", [4, 2], 2)
    tf.train.init_from_checkpoint(prefix, {"/": "new/"})
    return _values(tf, run)


def whole_of_parts(tf, run, folder):
    tf.get_variable("table", [7, 3], initializer=tf.zeros_initializer)
    tf.train.init_from_checkpoint(_path(folder, "parts"), {"rows/table": "table"})
    return _values(tf, run)


def other_parts_of_parts(tf, run, folder):
    _divided(tf, "table", [7, 3], 2)
    tf.train.init_from_checkpoint(_path(folder, "parts"), {"rows/": "new/"})
    return _values(tf, run)


def parts_of_two_variables(tf, run, folder):
    prefix = _saved(tf, folder)
    mixed = [next(iter(_divided(tf, name, [4, 2], 2))) for name in ("emb", "other")]
    tf.train.init_from_checkpoint(prefix, {"emb": mixed})


def saver_takes_a_bundle(tf, run, folder):
    tf.get_variable("words", initializer=tf.constant(["", ""]))
    tf.get_variable("rows/table", [7, 3])
    step = tf.train.get_or_create_global_step()
    tf.train.Saver().restore(tf.get_default_session(), _path(folder, "parts"))
    return [run(step).tolist(), [_value(run(v)) for v in tf.global_variables() if v is not step]]


INITIALIZING = {
    "scope_to_scope": _assigned({"old/": "new/"}),
    "scope_without_an_end": _assigned({"old/": "new"}),
    "scope_of_one_side": _assigned({"old": "new/"}),
    "name_to_name": _assigned({"old/w": "new/w"}),
    "name_to_variable": _assigned(lambda made: {"old/w": made["w"], "old/b": made["b"]}),
    "name_with_an_output": _assigned(lambda made: {"old/w:0": made["w"]}),
    "name_of_no_variable": _assigned({"old/w": "new/nothing"}),
    "name_of_a_variable_with_an_output": _assigned({"old/w": "new/w:0"}),
    "other_shape": _assigned({"old/w": "new/b"}),
    "other_shape_in_a_scope": _assigned({"old/": "new/"}, w=[3, 2]),
    "scope_that_is_not_saved": _assigned({"nothing/": "new/"}),
    "scope_without_variables": _assigned({"old/": "nothing/"}),
    "variable_that_is_not_saved": _assigned({"old/": "new/"}, w=[2, 3], other=[2]),
    "number_for_a_variable": _assigned({"old/w": 3}),
    "number_for_a_tensor": _assigned({3: "new/w"}),
    "empty_map": _assigned({}),
    "list_of_no_parts": _assigned(lambda made: {"old/w": []}),
}


# -- warm starts


def _warm(*arguments, **shapes):
    """Return the program that starts variables with those of a checkpoint."""

    def program(tf, run, folder):
        prefix = _saved(tf, folder)
        for name, shape in (shapes or {"root": [], "emb": [4, 2]}).items():
            tf.get_variable(name, shape, initializer=tf.zeros_initializer)
        tf.get_variable("kept", [], tf.int32, tf.ones_initializer, trainable=False)
        returned = tf.train.warm_start(prefix, *arguments)
        return [returned, _values(tf, run)]

    return program


def warm_start_of_variables(tf, run, folder):
    prefix = _saved(tf, folder)
    made = _made(tf, root=[], emb=[4, 2])
    names = {"new/root": "root"}
    tf.train.warm_start(prefix, [made["root"]], var_name_to_prev_var_name=names)
    return _values(tf, run)


def warm_start_of_parts(tf, run, folder):
    prefix = _saved(tf, folder)
    _divided(tf, "emb", [4, 2], 2)
    tf.train.warm_start(prefix, var_name_to_prev_var_name={"new/emb": "emb"})
    return _values(tf, run)


def warm_start_from_nothing(tf, run, folder):
    tf.get_variable("root", [])
    tf.train.warm_start(_path(folder, "none"))


def _vocabulary(folder, name, words):
    Path(folder, name).write_text("".join(word + "\n" for word in words))
    return _path(folder, name)


def _with_vocabularies(
    shape, new="dxbef", old="abcd", name="emb", tensor=None, parts=0, chosen=".*", **more
):
    """Return the program that starts a variable whose vocabulary changes."""

    def program(tf, run, folder):
        prefix = _saved(tf, folder)
        files = [_vocabulary(folder, label, text) for label, text in (("n", new), ("o", old))]
        label = "new/emb" if parts else name
        if parts:
            _divided(tf, "emb", shape, parts)
        else:
            tf.get_variable(name, shape, initializer=tf.zeros_initializer)
        options = dict({"new_vocab_size": len(new), "num_oov_buckets": 1}, **more)
        if options.pop("ones", False):
            options["backup_initializer"] = tf.ones_initializer()
        info = tf.train.VocabInfo(new_vocab=files[0], old_vocab=files[1], **options)
        names = {label: tensor} if tensor else None
        tf.train.warm_start(prefix, chosen, {label: info}, names)
        return _values(tf, run)

    return program


def vocabulary_info(tf, run, folder):
    info = tf.train.VocabInfo("new", 5, 1, "old")
    return [list(info), list(info._fields), info.axis, info == tf.train.VocabInfo(*info)]


def vocabulary_of_another_axis(tf, run, folder):
    return list(tf.train.VocabInfo("new", 5, 1, "old", axis=2))


def vocabulary_that_is_not_there(tf, run, folder):
    prefix = _saved(tf, folder)
    tf.get_variable("emb", [6, 2], initializer=tf.zeros_initializer)
    info = tf.train.VocabInfo(_path(folder, "no"), 5, 1, _vocabulary(folder, "o", "abcd"))
    tf.train.warm_start(prefix, ".*", {"emb": info})
    return _values(tf, run)


WARM_STARTS = {
    "warm_start": _warm(),
    "warm_start_of_a_pattern": _warm("ro"),
    "warm_start_of_none": _warm(None),
    "warm_start_of_an_empty_pattern": _warm(""),
    "warm_start_of_an_empty_list": _warm([]),
    "warm_start_of_a_list_of_patterns": _warm(["emb", "root"]),
    "warm_start_of_no_match": _warm("nothing"),
    "warm_start_of_a_number": _warm(3),
    "warm_start_of_a_mixed_list": _warm(["emb", 3]),
    "warm_start_with_all_global_variables": _warm([".*"]),
    "warm_start_with_other_names": _warm(".*", None, {"x": "old/w"}, x=[2, 3]),
    "warm_start_with_names_of_nothing": _warm(".*", None, {"nothing": "root"}),
    "warm_start_of_what_is_not_saved": _warm(x=[2, 3]),
    "warm_start_of_another_shape": _warm(emb=[2, 4]),
    "warm_start_with_vocabularies_of_nothing": _warm(".*", {"nothing": None}),
    "words_that_move": _with_vocabularies([6, 2]),
    "words_alone": _with_vocabularies([6, 2], chosen=None),
    "words_and_new_rows": _with_vocabularies([6, 2], ones=True),
    "words_of_which_few_were": _with_vocabularies([6, 2], old_vocab_size=2, ones=True),
    "words_of_which_few_are": _with_vocabularies([6, 2], new_vocab_size=3, num_oov_buckets=3),
    "words_without_buckets": _with_vocabularies([5, 2], num_oov_buckets=0),
    "words_all_known": _with_vocabularies([4, 2], new="dcba", num_oov_buckets=0),
    "words_in_columns": _with_vocabularies([2, 6], name="classes", axis=1, ones=True),
    "words_in_too_many_columns": _with_vocabularies([2, 7], name="classes", axis=1),
    "words_in_parts": _with_vocabularies([6, 2], parts=2, tensor="emb", ones=True),
    "words_in_many_parts": _with_vocabularies(
        [6, 2], parts=3, tensor="emb", num_oov_buckets=3, new_vocab_size=3, ones=True
    ),
    "words_under_another_name": _with_vocabularies([6, 2], name="x", tensor="emb"),
    "words_that_are_not_saved": _with_vocabularies([6, 2], name="x"),
    "words_for_too_many_rows": _with_vocabularies([7, 2]),
    "words_for_fewer_rows": _with_vocabularies([5, 2]),
    "words_for_other_columns": _with_vocabularies([6, 3]),
    "words_fewer_than_said": _with_vocabularies([7, 2], new_vocab_size=6),
    "words_fewer_than_there_were": _with_vocabularies([6, 2], old_vocab_size=9),
    "words_twice": _with_vocabularies([6, 2], old="aacd"),
    "words_of_another_checkpoint": _with_vocabularies([6, 2], old="qrstd"),
    "no_words": _with_vocabularies([6, 2], new_vocab_size=0, num_oov_buckets=6),
    "negative_buckets": _with_vocabularies([5, 2], num_oov_buckets=-1),
}

READING = [
    maps, debug_string, tensors_of_all_kinds, names_as_bytes, has_tensor,
    tensor_that_is_not_there, number_for_a_name, number_asked_for, no_checkpoint,
    number_for_a_path, none_for_a_path, folder_for_a_checkpoint, file_that_is_none,
    index_that_is_cut_short, index_that_is_empty, index_that_is_changed, tensor_that_is_changed,
    strings_that_are_changed, data_that_are_not_there, variables_of_a_checkpoint,
    variables_of_no_checkpoint, variables_of_an_empty_folder, variables_of_nothing,
    variable_by_name, variable_that_is_not_there, reader_of_an_empty_folder,
    reader_of_a_checkpoint, checkpoints_of_an_empty_folder,
]  # fmt: skip
ALONE = [
    at_the_root, from_the_root, other_dtype, variable_without_get_variable,
    name_of_no_get_variable, latest_of_a_folder, folder_without_checkpoints,
    initialize_from_nothing, initial_values, other_variables_keep_their_values, parts_of_a_whole,
    parts_in_a_list, parts_in_a_scope, whole_of_parts, other_parts_of_parts,
    parts_of_two_variables, saver_takes_a_bundle, warm_start_of_variables, warm_start_of_parts,
    warm_start_from_nothing, vocabulary_info, vocabulary_of_another_axis,
    vocabulary_that_is_not_there,
]  # fmt: skip
PROGRAMS = {program.__name__: program for program in READING + ALONE}
PROGRAMS.update(INITIALIZING)
PROGRAMS.update(WARM_STARTS)
