"""Small programs that save and restore, for TensorFlow 1.15 and for Headrace alike.

Each takes the namespace (``tf`` or ``hr``), a folder and ``attempt``, and returns what JSON holds.
"""

# Paths are text here, as programs for TensorFlow write them.
# ruff: noqa: PTH102, PTH109, PTH123, PTH208

from __future__ import annotations

import inspect
import os
from typing import Any

PROGRAMS: dict[str, Any] = {}

FUNCTIONS = (
    "Saver",
    "get_checkpoint_state",
    "update_checkpoint_state",
    "generate_checkpoint_state_proto",
    "latest_checkpoint",
    "checkpoint_exists",
    "get_checkpoint_mtimes",
    "remove_checkpoint",
)
METHODS = (
    "save",
    "restore",
    "build",
    "as_saver_def",
    "to_proto",
    "from_proto",
    "set_last_checkpoints",
    "set_last_checkpoints_with_time",
    "recover_last_checkpoints",
    "export_meta_graph",
)


def program(function: Any) -> Any:
    PROGRAMS[function.__name__] = function
    return function


def parameters(function: Any) -> list[list[str]]:
    """The arguments that have a place, in their order, each with its default."""
    found = inspect.signature(function).parameters.values()
    empty = inspect.Parameter.empty
    return [
        [p.name, "-" if p.default is empty else repr(p.default)]
        for p in found
        if p.kind is not p.KEYWORD_ONLY
    ]


def two(tf: Any) -> tuple[Any, Any]:
    return tf.Variable([1.0, 2.0], name="v"), tf.Variable(3, name="w")


def started(tf: Any) -> Any:
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session


def state(tf: Any, folder: str, *args: Any) -> Any:
    found = tf.train.get_checkpoint_state(folder, *args)
    if found is None:
        return None
    return [
        found.model_checkpoint_path,
        list(found.all_model_checkpoint_paths),
        list(found.all_model_checkpoint_timestamps),
    ]


def there(tf: Any, prefixes: list[str]) -> list[str]:
    return [prefix for prefix in prefixes if tf.train.checkpoint_exists(prefix)]


@program
def signatures(tf: Any, d: str, attempt: Any) -> Any:
    found = {name: parameters(getattr(tf.train, name)) for name in FUNCTIONS}
    found.update((name, parameters(getattr(tf.train.Saver, name))) for name in METHODS)
    return found


@program
def names_of_the_ops(tf: Any, d: str, attempt: Any) -> Any:
    two(tf)
    saver, second, named = tf.train.Saver(), tf.train.Saver(), tf.train.Saver(name="mine")
    wanted = ("Const", "SaveV2", "control_dependency", "RestoreV2", "Assign", "restore_all")
    graph = tf.get_default_graph()
    kinds = [graph.get_operation_by_name(f"save/{name}").name for name in wanted]
    found = [kinds]
    for one in (saver, second, named):
        d = one.as_saver_def()
        found.append([d.filename_tensor_name, d.save_tensor_name, d.restore_op_name])
        found.append([d.max_to_keep, d.sharded, d.keep_checkpoint_every_n_hours, d.version])
    return found


@program
def definitions(tf: Any, d: str, attempt: Any) -> Any:
    two(tf)
    saver = tf.train.Saver(max_to_keep=3, keep_checkpoint_every_n_hours=2.0)
    made = saver.to_proto()
    return [
        str(type(made).__name__),
        made.save_tensor_name,
        saver.to_proto("save").save_tensor_name,
        saver.to_proto("other"),
        tf.train.Saver.from_proto(made).as_saver_def().restore_op_name,
        tf.train.Saver.from_proto(made, "scope").as_saver_def().restore_op_name,
        tf.train.Saver(max_to_keep=None).as_saver_def().max_to_keep,
        tf.train.Saver(sharded=True).as_saver_def().sharded,
        tf.train.Saver(write_version=tf.train.SaverDef.V1).as_saver_def().version,
        tf.train.Saver(defer_build=True).as_saver_def(),
        attempt(lambda: tf.train.Saver(saver_def=5)),
        attempt(lambda: tf.train.Saver(saver_def=tf.train.SaverDef())),
    ]


@program
def a_saver_of_a_definition(tf: Any, d: str, attempt: Any) -> Any:
    v, _ = two(tf)
    made = tf.train.Saver(max_to_keep=2).as_saver_def()
    saver = tf.train.Saver(saver_def=made)
    with started(tf) as session:
        paths = [saver.save(session, d + "/m", i) for i in range(3)]
        session.run(v.assign([0.0, 0.0]))
        saver.restore(session, paths[-1])
        return [paths, saver.last_checkpoints, session.run(v).tolist(), there(tf, paths)]


@program
def ops_that_a_program_runs_itself(tf: Any, d: str, attempt: Any) -> Any:
    v, _ = two(tf)
    tf.train.Saver()
    with started(tf) as session:
        saved = session.run("save/control_dependency:0", {"save/Const:0": d + "/m"})
        session.run(v.assign([0.0, 0.0]))
        session.run("save/restore_all", {"save/Const:0": d + "/m"})
        return [saved.decode(), session.run(v).tolist(), tf.train.latest_checkpoint(d)]


@program
def the_latest_are_kept(tf: Any, d: str, attempt: Any) -> Any:
    two(tf)
    saver = tf.train.Saver(max_to_keep=2)
    with started(tf) as session:
        paths = [saver.save(session, d + "/m", i) for i in range(4)]
    return [paths, saver.last_checkpoints, there(tf, paths), state(tf, d)]


@program
def all_are_kept(tf: Any, d: str, attempt: Any) -> Any:
    two(tf)
    found = []
    for limit in (None, 0):
        saver = tf.train.Saver(max_to_keep=limit)
        with started(tf) as session:
            paths = [saver.save(session, f"{d}/{limit}/m", i) for i in range(7)]
        found.append([saver.last_checkpoints, there(tf, paths), state(tf, f"{d}/{limit}")])
    return found


@program
def names_without_global_step(tf: Any, d: str, attempt: Any) -> Any:
    two(tf)
    saver = tf.train.Saver(max_to_keep=2)
    with started(tf) as session:
        paths = [saver.save(session, f"{d}/{name}") for name in ("a", "b_1", "a", "c.ckpt")]
    return [paths, saver.last_checkpoints, there(tf, paths), state(tf, d)]


@program
def two_savers_of_one_folder(tf: Any, d: str, attempt: Any) -> Any:
    v, w = two(tf)
    first, second = tf.train.Saver([v], max_to_keep=1), tf.train.Saver([w], max_to_keep=2)
    paths = []
    with started(tf) as session:
        for i in range(3):
            paths.append(first.save(session, d + "/first", i))
            paths.append(second.save(session, d + "/second", i, latest_filename="other"))
    return [
        paths,
        there(tf, paths),
        state(tf, d),
        state(tf, d, "other"),
        tf.train.latest_checkpoint(d),
        tf.train.latest_checkpoint(d, "other"),
        first.last_checkpoints,
        second.last_checkpoints,
    ]


@program
def one_series_and_two_savers(tf: Any, d: str, attempt: Any) -> Any:
    two(tf)
    first, second = tf.train.Saver(max_to_keep=2), tf.train.Saver(max_to_keep=1)
    with started(tf) as session:
        paths = [first.save(session, d + "/m", i) for i in range(3)]
        paths += [second.save(session, d + "/m", i) for i in range(3, 5)]
    return [there(tf, paths), state(tf, d), first.last_checkpoints, second.last_checkpoints]


@program
def hours(tf: Any, d: str, attempt: Any) -> Any:
    two(tf)
    # None, and every one that is evicted.
    found = []
    for hours in (10000.0, 1e-9):
        saver = tf.train.Saver(max_to_keep=1, keep_checkpoint_every_n_hours=hours)
        with started(tf) as session:
            paths = [saver.save(session, f"{d}/{hours}/m", i) for i in range(4)]
        found.append([there(tf, paths), saver.last_checkpoints])
    return found


@program
def steps(tf: Any, d: str, attempt: Any) -> Any:
    _, w = two(tf)
    import numpy as np

    saver, padded = tf.train.Saver(), tf.train.Saver(pad_step_number=True)
    with started(tf) as session:

        def save(step: Any, saver: Any = saver) -> Any:
            return attempt(lambda: saver.save(session, d + "/m", step))

        given = (0, 7, -1, True, np.int64(5), np.int32(6), w, "w:0", w + 1, 10**9)
        return [*map(save, given), save(7, padded), save(123456789, padded), save(1.5), save("x")]


@program
def paths(tf: Any, d: str, attempt: Any) -> Any:
    two(tf)
    saver = tf.train.Saver()
    with started(tf) as session:

        def save(path: Any, *args: Any, **options: Any) -> Any:
            return attempt(lambda: saver.save(session, path, *args, **options))

        return [
            save(d + "/m"),
            save(d + "/new/m"),
            save(d + "/m.ckpt", 1),
            save(d + "/m.h5", 1),
            save(d + "/./m"),
            save(d + "/checkpoint"),
            save(d + "/checkpoint", 0),
            save(d + "/other", latest_filename="other"),
            save(d + "/m", latest_filename="a/b"),
            save(None),
            save(5),
            save(""),
        ]


@program
def relative_paths(tf: Any, d: str, attempt: Any) -> Any:
    two(tf)
    found = []
    before = os.getcwd()
    os.chdir(d)
    try:
        for relative in (False, True):
            saver = tf.train.Saver(save_relative_paths=relative)
            with started(tf) as session:
                for folder in (f"here{relative}", f"{d}/there{relative}"):
                    saved = saver.save(session, folder + "/m", 1)
                    with open(folder + "/checkpoint") as stream:
                        text = stream.read()
                    found.append([saved, text, tf.train.latest_checkpoint(folder)])
    finally:
        os.chdir(before)
    return found


@program
def without_state(tf: Any, d: str, attempt: Any) -> Any:
    two(tf)
    saver = tf.train.Saver(max_to_keep=1)
    with started(tf) as session:
        paths = [saver.save(session, d + "/m", i, write_state=False) for i in range(3)]
    return [there(tf, paths), saver.last_checkpoints, tf.train.latest_checkpoint(d), state(tf, d)]


@program
def lists_of_variables(tf: Any, d: str, attempt: Any) -> Any:
    v, w = two(tf)
    make = tf.train.Saver

    def names(var_list: Any) -> Any:
        def run() -> Any:
            with started(tf) as session:
                path = make(var_list).save(session, d + "/m", write_meta_graph=False)
            return sorted(name for name, _ in tf.train.list_variables(path))

        return attempt(run)

    given = [v, w], (v,), {"a": v}, {"a": v, "b": w}, {"a": v, "b": v}, [v, v], [], {}, v, 5, "v"
    return [*map(names, given), names([tf.constant(1.0)]), names({1: v})]


@program
def empty(tf: Any, d: str, attempt: Any) -> Any:
    saver = tf.train.Saver(allow_empty=True)
    with tf.Session() as session:
        return [
            attempt(lambda: tf.train.Saver()),
            saver.as_saver_def(),
            saver.save(session, d + "/m", 1, write_meta_graph=False),
            saver.restore(session, d + "/nowhere"),
            saver.last_checkpoints,
            tf.train.latest_checkpoint(d),
        ]


@program
def deferred(tf: Any, d: str, attempt: Any) -> Any:
    saver = tf.train.Saver(defer_build=True)
    v, _ = two(tf)
    with started(tf) as session:
        found = [
            attempt(lambda: tf.train.Saver([v], defer_build=True)),
            attempt(lambda: saver.save(session, d + "/m")),
            saver.as_saver_def(),
            saver.build(),
            saver.build(),
            saver.save(session, d + "/m"),
        ]
        session.run(v.assign([0.0, 0.0]))
        saver.restore(session, d + "/m")
        return [*found, session.run(v).tolist()]


@program
def what_was_written(tf: Any, d: str, attempt: Any) -> Any:
    two(tf)
    saver = tf.train.Saver(max_to_keep=3)
    found = [saver.last_checkpoints]
    with started(tf) as session:
        paths = [saver.save(session, d + "/m", i) for i in range(2)]
        found += [
            saver.set_last_checkpoints(["a", "b"]),
            saver.last_checkpoints,
            saver.set_last_checkpoints_with_time([("c", 1.0), ("d", 2.0)]),
            saver.last_checkpoints,
            saver.recover_last_checkpoints([*paths, d + "/nowhere"]),
            saver.last_checkpoints,
            attempt(lambda: saver.set_last_checkpoints("a")),
            attempt(lambda: saver.set_last_checkpoints_with_time(("a", 1.0))),
            attempt(lambda: saver.set_last_checkpoints(None)),
        ]
        paths += [saver.save(session, d + "/m", i) for i in range(2, 4)]
    return [*found, saver.last_checkpoints, there(tf, paths), state(tf, d)]


@program
def a_restart(tf: Any, d: str, attempt: Any) -> Any:
    two(tf)
    first, second = tf.train.Saver(max_to_keep=3), tf.train.Saver(max_to_keep=3)
    with started(tf) as session:
        paths = [first.save(session, d + "/m", i) for i in range(3)]
        second.recover_last_checkpoints(tf.train.get_checkpoint_state(d).all_model_checkpoint_paths)
        paths += [second.save(session, d + "/m", i) for i in range(3, 5)]
    return [second.last_checkpoints, there(tf, paths), state(tf, d)]


@program
def those_that_never_go(tf: Any, d: str, attempt: Any) -> Any:
    two(tf)
    first, second = tf.train.Saver(), tf.train.Saver(max_to_keep=2)
    with started(tf) as session:
        paths = [first.save(session, d + "/m", i) for i in range(2)]
        second.set_last_checkpoints(list(paths))
        paths += [second.save(session, d + "/m", i) for i in range(2, 6)]
    return [second.last_checkpoints, there(tf, paths)]


@program
def restoring(tf: Any, d: str, attempt: Any) -> Any:
    v, _ = two(tf)
    saver = tf.train.Saver()
    other = tf.train.Saver({"v": tf.Variable([0.0], name="small")})
    kind = tf.train.Saver({"v": tf.Variable([1, 2], name="kind")})
    gone = tf.train.Saver({"gone": v})
    column = tf.Variable([[0.0], [0.0]], name="column")
    long = tf.Variable([0.0] * 3, name="long")
    with started(tf) as session:
        path = saver.save(session, d + "/m", 1)
        session.run(v.assign([7.0, 7.0]))

        def restore(saver: Any, path: Any = path) -> Any:
            return attempt(lambda: saver.restore(session, path))

        return [
            restore(saver),
            session.run(v).tolist(),
            restore(saver, None),
            restore(saver, 5),
            restore(saver, d + "/nowhere"),
            restore(saver, d + "/nowhere/m"),
            restore(saver, d),
            restore(other),
            restore(kind),
            restore(gone),
            restore(tf.train.Saver({"v": column})),
            restore(tf.train.Saver({"v": column}, reshape=True)),
            session.run(column).tolist(),
            restore(tf.train.Saver({"v": long}, reshape=True)),
            attempt(lambda: saver.restore(None, path)) is None,
        ]


@program
def saving_what_has_no_value(tf: Any, d: str, attempt: Any) -> Any:
    two(tf)
    saver = tf.train.Saver()
    with tf.Session() as session:
        return [
            attempt(lambda: saver.save(session, d + "/m")),
            attempt(lambda: saver.save(None, d + "/m")),
            attempt(lambda: saver.save("session", d + "/m")),
            tf.train.checkpoint_exists(d + "/m"),
            saver.last_checkpoints,
        ]


@program
def sharded(tf: Any, d: str, attempt: Any) -> Any:
    v, _ = two(tf)
    with tf.device("/cpu:0"):
        x = tf.Variable(1.5, name="x")
    saver = tf.train.Saver(sharded=True, max_to_keep=2)
    with started(tf) as session:
        paths = [saver.save(session, d + "/m", i) for i in range(3)]
        session.run([v.assign([0.0, 0.0]), x.assign(0.0)])
        tf.train.Saver().restore(session, paths[-1])
        values = [session.run(v).tolist(), float(session.run(x))]
        whole = tf.train.Saver().save(session, d + "/whole")
        session.run([v.assign([0.0, 0.0]), x.assign(0.0)])
        saver.restore(session, whole)
        values += [session.run(v).tolist(), float(session.run(x))]
    names = sorted(name for name, _ in tf.train.list_variables(paths[-1]))
    return [paths, there(tf, paths), values, names, tf.train.latest_checkpoint(d)]


@program
def parts_of_variables(tf: Any, d: str, attempt: Any) -> Any:
    v = tf.get_variable(
        "p",
        [5, 2],
        partitioner=tf.fixed_size_partitioner(2),
        initializer=tf.ones_initializer(),
    )
    w = tf.get_variable("whole", [5, 2], initializer=tf.zeros_initializer())
    found = []
    with started(tf) as session:
        first, second = list(v)
        lists = (
            None,
            [v],
            {"x": v},
            [first, second],
            {"a": first, "b": second},
            {"y": [first, second]},
        )
        for number, var_list in enumerate(lists):
            path = tf.train.Saver(var_list).save(session, f"{d}/m{number}")
            found.append([[n, list(s)] for n, s in tf.train.list_variables(path)])
        tf.train.Saver({"p": w}).restore(session, d + "/m0")
        found.append(session.run(w).tolist())
        session.run(w.assign(w * 3.0))
        tf.train.Saver({"p": w}).save(session, d + "/whole")
        tf.train.Saver([v]).restore(session, d + "/whole")
        found.append([session.run(part).tolist() for part in v])
    return found


@program
def what_is_fed_by_default(tf: Any, d: str, attempt: Any) -> Any:
    two(tf)
    saver = tf.train.Saver(filename=d + "/own", name="own")
    tf.train.Saver()
    with started(tf) as session:
        found = [
            session.run("own/Const:0").decode(),
            session.run("save/Const:0").decode(),
            session.run("own/control_dependency:0").decode(),
        ]
        return [*found, tf.train.checkpoint_exists(d + "/own"), saver.last_checkpoints]


@program
def states(tf: Any, d: str, attempt: Any) -> Any:
    make, update = tf.train.generate_checkpoint_state_proto, tf.train.update_checkpoint_state

    def told(*args: Any, **options: Any) -> Any:
        def run() -> Any:
            found = make(*args, **options)
            return [
                found.model_checkpoint_path,
                list(found.all_model_checkpoint_paths),
                list(found.all_model_checkpoint_timestamps),
                found.last_preserved_timestamp,
            ]

        return attempt(run)

    def written(*args: Any, **options: Any) -> Any:
        def run() -> Any:
            update(d, *args, **options)
            with open(d + "/" + options.get("latest_filename", "checkpoint")) as stream:
                return [stream.read(), state(tf, d)]

        return attempt(run)

    a, b = d + "/a", d + "/b"
    return [
        told(d, a),
        told(d, a, [a, b]),
        told(d, b, [a, b]),
        told(d, b, [a, b], [1.0, 2.0], 3.0),
        told(d, b, [a, b], [1.0]),
        told("x/y", "x/y/a", ["x/y/a", "x/y/b"]),
        written(a),
        written(b, [a, b]),
        written(b, [a, b], all_model_checkpoint_timestamps=[1.5, 2.5]),
        written(a, latest_filename="other"),
        written("relative"),
        attempt(lambda: update(d, d + "/checkpoint")),
        attempt(lambda: update(d, a, latest_filename="x" * 3)),
        tf.train.latest_checkpoint(d),
    ]


@program
def states_that_make_no_sense(tf: Any, d: str, attempt: Any) -> Any:
    found = [state(tf, d + "/nowhere"), tf.train.latest_checkpoint(d + "/nowhere")]
    for content in ("", "garbage {", 'model_checkpoint_path: "x"', "unknown: 3", "\n"):
        with open(d + "/checkpoint", "w") as stream:
            stream.write(content)
        found.append(attempt(lambda: state(tf, d)))
    os.mkdir(d + "/folder")
    os.mkdir(d + "/folder/checkpoint")
    return [*found, attempt(lambda: state(tf, d + "/folder"))]


@program
def existing(tf: Any, d: str, attempt: Any) -> Any:
    two(tf)
    with started(tf) as session:
        path = tf.train.Saver().save(session, d + "/m", 1)
        sharded = tf.train.Saver(sharded=True, name="s").save(session, d + "/s", 1)
    both = [path, d + "/nowhere", sharded]
    times = tf.train.get_checkpoint_mtimes(both)
    found = [
        [tf.train.checkpoint_exists(p) for p in both],
        [1.6e9 < t < 1e10 for t in times],
        tf.train.remove_checkpoint(d + "/nowhere"),
        tf.train.remove_checkpoint(path),
        tf.train.remove_checkpoint(sharded),
        [tf.train.checkpoint_exists(p) for p in both],
        tf.train.get_checkpoint_mtimes(both),
    ]
    return [*found, sorted(name for name in os.listdir(d) if name[:2] in ("m-", "s-"))]
