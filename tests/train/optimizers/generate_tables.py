"""Writes ``results.json``: what TensorFlow 1.15 computes for the cases.

Run by hand, on a Python that has it: ``python tests/train/optimizers/generate_tables.py``.
"""

import json
import pathlib

import cases
import numpy as np
import tensorflow as tf
from tensorflow.contrib import opt

HERE = pathlib.Path(__file__).parent
train = tf.compat.v1.train


def listed(array):
    """Return an array as lists of numbers that are as short as their dtype allows."""
    array = np.asarray(array)
    return [float(str(x)) for x in array.reshape(-1)]


def optimizer(name, arguments, step, dtype):
    """Return the optimizer of a case."""
    kind = getattr(train, name, None) or getattr(opt, name)
    given = {k: step if v == cases.STEP else v for k, v in arguments.items()}
    if name.startswith("Proximal"):
        # These do not cast what they are given.
        given = dict(
            {"l1_regularization_strength": 0.0, "l2_regularization_strength": 0.0}, **given
        )
        for key in given:
            if not key.startswith("initial"):
                given[key] = tf.constant(given[key], dtype)
    if "Adam" in name and dtype == "float64":
        # It counts powers of numbers in float32, whatever the variables are.
        for key, usual in (("beta1", 0.9), ("beta2", 0.999)):
            given[key] = tf.constant(given.get(key, usual), dtype)
    return kind(**given)


def trained(name, arguments, dtype, sparse):
    """Return the variable after some steps, and the slots at the end."""
    with tf.Graph().as_default():
        shape = cases.ROWS if sparse else cases.DENSE_SHAPE
        x = tf.compat.v1.get_variable("x", initializer=tf.cast(cases.starts(shape), dtype))
        step = train.create_global_step()
        values = tf.compat.v1.placeholder(dtype, [None, shape[1]])
        rows = tf.compat.v1.placeholder(tf.int32, [None])
        dense = tf.compat.v1.placeholder(dtype, shape)
        gradient = tf.IndexedSlices(values, rows, shape) if sparse else dense
        made = optimizer(name, arguments, step, dtype)
        update = made.apply_gradients([(gradient, x)], global_step=step)
        found = {"values": [], "slots": {}}
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            for count in range(cases.STEPS):
                if sparse:
                    part = cases.slices(shape[1])[count]
                    session.run(update, {values: part, rows: cases.INDICES[count]})
                else:
                    session.run(update, {dense: cases.gradients(shape)[count]})
                if count + 1 in cases.KEPT:
                    found["values"].append(listed(session.run(x)))
            for slot in made.get_slot_names():
                variable = made.get_slot(x, slot)
                found["slots"][slot] = [variable.op.name, listed(session.run(variable))]
        return found


def scheduled(make, dtype):
    """Return a schedule at some steps, None where TensorFlow has none of that dtype."""
    with tf.Graph().as_default():
        step = tf.compat.v1.placeholder(tf.int64, [])
        try:
            rate = make(tf.constant(cases.RATE, dtype), step)
        except (TypeError, ValueError):
            return None
        with tf.compat.v1.Session() as session:
            return [listed(session.run(rate, {step: s}))[0] for s in cases.SCHEDULE_STEPS]


def schedule(name, arguments):
    """Return a function that makes a schedule of a rate and a step."""
    return lambda rate, step: getattr(train, name)(rate, step, **arguments)


def pieces(boundaries, values):
    """Return a function that makes a piecewise constant schedule."""
    borders = [np.int64(b) for b in boundaries]
    return lambda rate, step: train.piecewise_constant(step, borders, values)


def averaged(arguments):
    """Return the averages of a variable and of a tensor in each step, and their names."""
    given = dict(arguments)
    with tf.Graph().as_default():
        x = tf.compat.v1.get_variable("x", initializer=cases.starts([2]))
        step = train.create_global_step()
        square = tf.square(x, name="square")
        if given.pop("steps", False):
            given["num_updates"] = step
        average = train.ExponentialMovingAverage(**given)
        update = average.apply([x, square])
        names = [average.average(s).op.name for s in (x, square)]
        found = []
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            for gradient in cases.gradients([2]):
                session.run([x.assign_add(gradient).op, step.assign_add(1).op])
                session.run(update)
                both = session.run([average.average(x), average.average(square)])
                found.append([listed(value) for value in both])
        others = sorted(v.op.name for v in tf.compat.v1.global_variables())
        return {"names": names, "variables": others, "values": found}


def main():
    """Run all cases."""
    found = {
        "provenance": "TensorFlow {}, generate_tables.py".format(tf.__version__),
        "optimizers": {
            name: {
                "{} {}".format(kind, dtype): trained(*case, dtype=dtype, sparse=kind == "sparse")
                for kind in ("dense", "sparse")
                for dtype in ("float32", "float64")
            }
            for name, case in cases.OPTIMIZERS.items()
        },
        "schedules": [
            {dtype: scheduled(schedule(*case), dtype) for dtype in ("float32", "float64")}
            for case in cases.SCHEDULES
        ],
        "pieces": [scheduled(pieces(*case), "float32") for case in cases.PIECES],
        "averages": {name: averaged(given) for name, given in cases.AVERAGES.items()},
    }
    lines = json.dumps(found, indent=1).replace("\n      ", " ").replace("\n     ]", " ]")
    (HERE / "results.json").write_text(lines + "\n")


if __name__ == "__main__":
    main()
