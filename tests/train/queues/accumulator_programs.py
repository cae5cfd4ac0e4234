"""Small programs with accumulators, for TensorFlow 1.15 and for Headrace; see ``programs.py``."""


def _listed(value):
    if isinstance(value, (list, tuple)):
        return [_listed(part) for part in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _dense(tf, **arguments):
    return tf.ConditionalAccumulator(tf.float32, shape=[2], name="a", **arguments)


def _sparse(tf, **arguments):
    return tf.SparseConditionalAccumulator(tf.float32, shape=[5, 2], name="a", **arguments)


def the_mean_of_all(tf, run):
    a = _dense(tf)
    run(a.apply_grad([1.0, 2.0]))
    run(a.apply_grad([3.0, 6.0], local_step=5))
    return _listed([run(a.num_accumulated()), run(a.take_grad(1)), run(a.num_accumulated())])


def the_sum_of_all(tf, run):
    a = tf.ConditionalAccumulator(tf.float64, reduction_type="SUM")
    run(a.apply_grad(tf.constant([1.0, 2.0], tf.float64)))
    run(a.apply_grad(tf.constant([1.0, 2.0], tf.float64)))
    return _listed([run(a.take_grad(2)), a.take_grad(2).shape.ndims])


def gradients_of_earlier_steps(tf, run):
    a = _dense(tf)
    run(a.apply_grad([1.0, 2.0]))
    run(a.take_grad(1))
    counts = []
    for step in (0, 1):
        run(a.apply_grad([1.0, 2.0], local_step=step))
        counts.append(run(a.num_accumulated()))
    run(a.set_global_step(7))
    for step in (6, 7, 8):
        run(a.apply_grad([1.0, 2.0], local_step=step))
        counts.append(run(a.num_accumulated()))
    return _listed(counts)


def names_of_accumulators(tf, run):
    with tf.name_scope("in"):
        a, s = _dense(tf), _sparse(tf)
    made = [tf.ConditionalAccumulator(tf.float32), tf.SparseConditionalAccumulator(tf.float32)]
    return [
        [a.name, a.accumulator_ref.op.name, a.num_accumulated().op.name, a.dtype == tf.float32],
        [s.name, s.accumulator_ref.op.name, a.take_grad(1).shape.as_list()],
        [each.name for each in made],
        list(s.take_grad(1)._fields),
    ]


def rows_of_several_gradients(tf, run):
    a = _sparse(tf)
    run(a.apply_grad([0, 2], [[1.0, 1.0], [2.0, 2.0]], [5, 2]))
    run(a.apply_grad([1, 2, 4], [[4.0, 4.0], [1.0, 3.0], [7.0, 7.0]]))
    return _listed([run(a.num_accumulated()), list(run(a.take_grad(1)))])


def rows_in_no_order(tf, run):
    a = _sparse(tf)
    run(a.apply_grad([0, 2], [[1.0, 1.0], [2.0, 2.0]], [5, 2]))
    run(a.apply_grad([2, 1], [[4.0, 4.0], [1.0, 3.0]]))
    run(a.apply_grad([1, 1], [[4.0, 4.0], [1.0, 3.0]]))
    return _listed(list(run(a.take_grad(1))))


def the_sum_of_rows(tf, run):
    a = tf.SparseConditionalAccumulator(tf.float32, reduction_type="SUM")
    run(a.apply_grad([3, 0], [[1.0, 1.0], [2.0, 2.0]]))
    run(a.apply_grad([3], [[1.0, 1.0]], [9, 2]))
    return _listed(list(run(a.take_grad(2))))


def slices(tf, run):
    a = _sparse(tf)
    values, indices = tf.constant([[1.0, 2.0]]), tf.constant([3], tf.int64)
    shape = tf.constant([5, 2], tf.int64)
    run(a.apply_indexed_slices_grad(tf.IndexedSlices(values, indices, shape)))
    found = run(a.take_indexed_slices_grad(1))
    return _listed([found.values, found.indices, found.dense_shape])


def no_gradient_at_all_required(tf, run):
    run(_dense(tf).take_grad(0))


def a_gradient_of_another_shape(tf, run):
    _dense(tf).apply_grad([1.0])


def a_gradient_of_another_shape_in_a_step(tf, run):
    run(_dense(tf).apply_grad(tf.placeholder_with_default([1.0], None)))


def another_reduction(tf, run):
    _dense(tf, reduction_type="MAX")


def a_shape_beyond_the_accumulator(tf, run):
    run(_sparse(tf).apply_grad([0], [[1.0, 1.0]], [6, 2]))


def fewer_rows_than_indices(tf, run):
    run(_sparse(tf).apply_grad([0, 1], [[1.0, 1.0]], [5, 2]))


def indices_that_are_no_vector(tf, run):
    run(_sparse(tf).apply_grad([[0]], [[1.0, 1.0]], [5, 2]))


def a_row_beyond_the_shape(tf, run):
    run(_sparse(tf).apply_grad([7], [[1.0, 1.0]], [5, 2]))


def rows_of_another_length(tf, run):
    run(_sparse(tf).apply_grad([0], [[1.0, 1.0, 2.0]]))


PROGRAMS = {
    name: made for name, made in sorted(globals().items()) if callable(made) and name[0] != "_"
}
