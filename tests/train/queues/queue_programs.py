"""Small programs with queues, for TensorFlow 1.15 and for Headrace alike.

Each takes the library as ``tf``, and a function that runs something in a session, and returns what
JSON can hold. ``generate_expected.py`` writes what TensorFlow's returns and raises.
"""


def _listed(value):
    if isinstance(value, (list, tuple)):
        return [_listed(part) for part in value]
    if isinstance(value, dict):
        return {key: _listed(part) for key, part in value.items()}
    if isinstance(value, bytes):
        return value.decode()
    return _listed(value.tolist()) if hasattr(value, "tolist") else value


def _shape(tensor):
    shape = tensor.shape
    return None if shape.ndims is None else shape.as_list()


def names_of_operations(tf, run):
    q = tf.FIFOQueue(3, [tf.int32, tf.string], [[], []], name="q")
    with tf.name_scope("in"):
        r = tf.FIFOQueue(3, tf.int32, name="r")
        inner = [r.name, r.enqueue([1]).name, r.dequeue().op.name]
    made = [q.enqueue([1, "a"]), q.enqueue_many([[1], ["a"]]), q.dequeue()[0].op]
    made += [q.dequeue_many(2)[0].op, q.dequeue_up_to(2)[0].op, q.size().op, q.close()]
    made += [q.is_closed().op, q.dequeue(name="next")[0].op, q.enqueue([1, "a"], name="put")]
    return [q.name, q.queue_ref.op.name, inner, [op.name for op in made]]


def default_names(tf, run):
    made = [tf.FIFOQueue(3, tf.int32), tf.RandomShuffleQueue(3, 1, tf.int32)]
    made += [tf.PaddingFIFOQueue(3, [tf.int32], [[]]), tf.PriorityQueue(3, [tf.int32], [[]])]
    return [queue.name for queue in made]


def properties(tf, run):
    q = tf.FIFOQueue(3, [tf.int32, tf.string], [[2], []], names=["x", "y"])
    p = tf.PriorityQueue(3, [tf.string], [[]])
    return [
        q.dtypes == [tf.int32, tf.string],
        [shape.as_list() for shape in q.shapes],
        q.names,
        p.dtypes == [tf.int64, tf.string],
        [shape.as_list() for shape in p.shapes],
        p.names,
    ]


def static_shapes(tf, run):
    q = tf.FIFOQueue(3, [tf.int32, tf.string], [[2], []])
    p = tf.PaddingFIFOQueue(3, [tf.float32], [[None, 2]])
    n = tf.placeholder(tf.int32, [])
    found = [*q.dequeue(), *q.dequeue_many(4), *q.dequeue_up_to(4), *q.dequeue_many(n)]
    found += [p.dequeue(), p.dequeue_many(3), p.dequeue_up_to(3)]
    found += [tf.FIFOQueue(3, tf.int32).dequeue(), q.size(), q.is_closed()]
    return [_shape(tensor) for tensor in found]


def first_in_first_out(tf, run):
    q = tf.FIFOQueue(10, [tf.int32, tf.string], [[], []])
    run(q.enqueue_many([[1, 2, 3, 4, 5], ["a", "b", "c", "d", "e"]]))
    run(q.enqueue([6, "f"]))
    return _listed([run(q.size()), run(q.dequeue()), run(q.dequeue_many(3)), run(q.dequeue())])


def dictionaries(tf, run):
    q = tf.FIFOQueue(10, [tf.int32, tf.float32], [[], []], names=["n", "x"])
    run(q.enqueue_many({"x": [0.5, 1.5], "n": [1, 2]}))
    run(q.enqueue({"n": 3, "x": 2.5}))
    return _listed([run(q.dequeue()), run(q.dequeue_up_to(2))])


def smallest_priority_first(tf, run):
    q = tf.PriorityQueue(10, [tf.string], [[]])
    priorities = tf.constant([3, -1, 2, 2**40], tf.int64)
    run(q.enqueue_many([priorities, ["c", "a", "b", "z"]]))
    run(q.enqueue([tf.constant(0, tf.int64), "n"]))
    return _listed([run(q.dequeue()), run(q.dequeue_many(4)), run(q.size())])


def padding(tf, run):
    q = tf.PaddingFIFOQueue(10, [tf.int32, tf.string], [[None, 2], [None]])
    for rows in (1, 3, 0, 2):
        run(q.enqueue([tf.ones([rows, 2], tf.int32) * rows, ["s"] * rows + ["t"]]))
    three = run(q.dequeue_many(3))
    run(q.close())
    none = run(q.dequeue_up_to(0))
    return _listed([three, run(q.dequeue_up_to(5)), [list(part.shape) for part in none]])


def shuffled_with_what_stays(tf, run):
    q = tf.RandomShuffleQueue(10, 2, tf.int32, [[]], seed=5)
    run(q.enqueue_many([[1, 2, 3, 4, 5, 6]]))
    taken = _listed(run(q.dequeue_many(4)))
    run(q.close())
    return [sorted(taken + _listed(run(q.dequeue_up_to(9)))), run(q.size()).tolist()]


def unbounded(tf, run):
    q = tf.FIFOQueue(-1, tf.int32, [[]])
    run(q.enqueue_many([tf.range(1000)]))
    return run(q.size()).tolist()


def choosing_a_queue(tf, run):
    first = tf.FIFOQueue(3, tf.int32, [[2]], name="first")
    second = tf.FIFOQueue(3, tf.int32, [[2]], name="second")
    third = tf.FIFOQueue(3, tf.int32, [[3]], name="third")
    index = tf.placeholder_with_default(1, [])
    one = tf.QueueBase.from_list(index, [first, second])
    run(one.enqueue([[1, 2]]))
    mixed = tf.QueueBase.from_list(index, [first, third])
    sizes = [run(first.size()).tolist(), run(second.size()).tolist()]
    return [sizes, _listed(run(one.dequeue())), [s.as_list() for s in mixed.shapes]]


def _closed(tf, run):
    q = tf.FIFOQueue(5, tf.int32, [[]])
    run(q.enqueue_many([[1, 2, 3]]))
    run(q.close())
    return q


def what_is_left_of_a_closed_queue(tf, run):
    q = _closed(tf, run)
    return _listed([run(q.is_closed()), run(q.size()), run(q.dequeue()), run(q.dequeue_up_to(9))])


def closing_to_cancel_what_is_closed(tf, run):
    run(_closed(tf, run).close(cancel_pending_enqueues=True))


def enqueue_into_a_closed_queue(tf, run):
    run(_closed(tf, run).enqueue(4))


def close_a_closed_queue(tf, run):
    run(_closed(tf, run).close())


def too_many_from_a_closed_queue(tf, run):
    run(_closed(tf, run).dequeue_many(4))


def dequeue_up_to_from_a_closed_and_empty_queue(tf, run):
    q = _closed(tf, run)
    run(q.dequeue_many(3))
    run(q.dequeue_up_to(2))


def too_few_components(tf, run):
    run(tf.FIFOQueue(3, [tf.int32, tf.string]).enqueue([1]))


def components_of_another_dtype(tf, run):
    tf.FIFOQueue(3, [tf.int32]).enqueue([1.5])


def tensor_of_another_dtype(tf, run):
    tf.FIFOQueue(3, [tf.int32]).enqueue([tf.constant(1.5)])


def component_of_another_shape(tf, run):
    tf.FIFOQueue(3, [tf.int32], [[]]).enqueue([[1]])


def component_of_another_shape_in_a_step(tf, run):
    x = tf.placeholder_with_default([1], None)
    run(tf.FIFOQueue(3, [tf.int32], [[]]).enqueue([x]))


def rows_of_another_shape_in_a_step(tf, run):
    x = tf.placeholder_with_default([[1.0]], None)
    run(tf.PaddingFIFOQueue(3, [tf.float32], [[None, 2]]).enqueue([x]))


def components_of_different_lengths(tf, run):
    tf.FIFOQueue(3, [tf.int32, tf.int32]).enqueue_many([[1, 2], [1]])


def components_of_different_lengths_in_a_step(tf, run):
    x = tf.placeholder_with_default([1], None)
    run(tf.FIFOQueue(3, [tf.int32, tf.int32], [[], []]).enqueue_many([[1, 2], x]))


def a_dictionary_without_names(tf, run):
    tf.FIFOQueue(3, [tf.int32]).enqueue({"x": 1})


def a_list_where_there_are_names(tf, run):
    tf.FIFOQueue(3, [tf.int32], names=["x"]).enqueue([1])


def a_dictionary_of_other_names(tf, run):
    tf.FIFOQueue(3, [tf.int32], names=["x"]).enqueue({"y": 1})


def joining_elements_of_free_shapes(tf, run):
    run(tf.FIFOQueue(3, tf.int32).dequeue_many(1))


def a_negative_number_of_elements(tf, run):
    tf.FIFOQueue(3, tf.int32, [[]]).dequeue_many(-1)


def fewer_shapes_than_dtypes(tf, run):
    tf.FIFOQueue(3, [tf.int32, tf.int32], [[]])


def fewer_names_than_dtypes(tf, run):
    tf.FIFOQueue(3, [tf.int32, tf.int32], names=["x"])


def more_to_keep_than_there_is_room(tf, run):
    run(tf.RandomShuffleQueue(3, 3, tf.int32).size())


def less_than_nothing_to_keep(tf, run):
    run(tf.RandomShuffleQueue(3, -1, tf.int32).size())


def padding_without_shapes(tf, run):
    tf.PaddingFIFOQueue(3, tf.int32, None)


def padding_with_a_shape_that_is_no_list(tf, run):
    tf.PaddingFIFOQueue(3, tf.int32, [None])


def padding_of_unknown_rank(tf, run):
    tf.PaddingFIFOQueue(3, [tf.int32], [tf.TensorShape(None)])


def a_name_shared_by_different_queues(tf, run):
    run(tf.FIFOQueue(3, tf.int32, shared_name="shared").size())
    run(tf.FIFOQueue(4, tf.int32, shared_name="shared").size())


def a_name_shared_by_queues_of_different_kinds(tf, run):
    run(tf.FIFOQueue(3, tf.int32, shared_name="shared").size())
    run(tf.RandomShuffleQueue(3, 1, tf.int32, shared_name="shared").size())


def a_name_shared_by_equal_queues(tf, run):
    run(tf.FIFOQueue(3, tf.int32, [[]], shared_name="shared").enqueue(7))
    return run(tf.FIFOQueue(3, tf.int32, [[]], shared_name="shared").dequeue()).tolist()


def choosing_among_no_queues(tf, run):
    tf.QueueBase.from_list(0, [])


def choosing_among_other_things(tf, run):
    tf.QueueBase.from_list(0, [tf.FIFOQueue(3, tf.int32), 3])


def choosing_among_different_queues(tf, run):
    tf.QueueBase.from_list(0, [tf.FIFOQueue(3, tf.int32), tf.FIFOQueue(3, tf.float32)])


def choosing_beyond_the_end(tf, run):
    queues = [tf.FIFOQueue(3, tf.int32), tf.FIFOQueue(3, tf.int32)]
    run(tf.QueueBase.from_list(tf.placeholder_with_default(5, []), queues).size())


def a_priority_of_another_dtype(tf, run):
    tf.PriorityQueue(3, [tf.string], [[]]).enqueue([1.5, "a"])


def a_runner_of_nothing(tf, run):
    tf.train.QueueRunner()


def a_runner_without_operations(tf, run):
    tf.train.QueueRunner(tf.FIFOQueue(3, tf.int32), [])


def a_runner_with_a_list_of_errors(tf, run):
    q = tf.FIFOQueue(3, tf.int32)
    tf.train.QueueRunner(
        q, [q.enqueue(1)], queue_closed_exception_types=[tf.errors.OutOfRangeError]
    )


def a_runner_with_other_errors(tf, run):
    q = tf.FIFOQueue(3, tf.int32)
    tf.train.QueueRunner(q, [q.enqueue(1)], queue_closed_exception_types=(ValueError,))


def a_runner(tf, run):
    q = tf.FIFOQueue(3, tf.int32, name="q")
    runner = tf.train.QueueRunner(q, [q.enqueue(1)])
    tf.train.add_queue_runner(runner)
    return [
        runner.name,
        [op.name for op in runner.enqueue_ops],
        runner.close_op.name,
        runner.cancel_op.name,
        [kind.__name__ for kind in runner.queue_closed_exception_types],
        runner.exceptions_raised,
        tf.get_collection("queue_runners") == [runner],
    ]


def runners_without_a_session(tf, run):
    tf.train.start_queue_runners()


def runners_in_something_else(tf, run):
    tf.train.start_queue_runners(3)


def a_looper_without_a_coordinator(tf, run):
    tf.train.LooperThread(3, 1)


def a_looper_with_arguments_for_nothing(tf, run):
    tf.train.LooperThread(tf.train.Coordinator(), 1, args=(3,))


def stopping_with_no_error(tf, run):
    tf.train.Coordinator().request_stop(3)


def an_epoch(tf, run):
    source = tf.FIFOQueue(20, tf.int32, [[]])
    run(source.enqueue_many([tf.range(17)]))
    run(source.close())
    q = tf.FIFOQueue(5, tf.int32, [[]])
    tf.train.add_queue_runner(tf.train.QueueRunner(q, [q.enqueue(source.dequeue())] * 3))
    batch = q.dequeue_up_to(4)
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(run.session, coord)
    seen = []
    try:
        while not coord.should_stop():
            seen.append(_listed(run(batch)))
    except tf.errors.OutOfRangeError as error:
        coord.request_stop(error)
    coord.join(threads)
    numbers = sorted(number for part in seen for number in part)
    return [numbers, [len(part) for part in seen], len(threads), coord.joined]


def an_error_in_a_runner(tf, run):
    q = tf.FIFOQueue(5, tf.int32, [[]])
    bad = tf.gather([1], tf.placeholder_with_default(3, []))
    tf.train.add_queue_runner(tf.train.QueueRunner(q, [q.enqueue(bad)]))
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(run.session, coord)
    coord.wait_for_stop(20)
    coord.join(threads)


def _class(tf, name):
    if hasattr(tf, name):
        return getattr(tf, name)
    from tensorflow.python.ops import data_flow_ops  # not among TensorFlow's public names

    return getattr(data_flow_ops, name)


def _barrier(tf):
    return _class(tf, "Barrier")((tf.string, tf.int32), shapes=((), (2,)))


def a_barrier(tf, run):
    barrier = _barrier(tf)
    run(barrier.insert_many(0, ["k1", "k2"], ["a", "b"]))
    run(barrier.insert_many(1, ["k1"], [[1, 1]]))
    run(barrier.insert_many(0, ["k3"], ["c"]))
    sizes = [run(barrier.ready_size()), run(barrier.incomplete_size())]
    run(barrier.insert_many(1, ["k3"], [[3, 3]]))
    run(barrier.insert_many(1, ["k2"], [[2, 2]]))
    indices, keys, values = barrier.take_many(2)
    first, second = run([indices, keys, *values]), run(list(barrier.take_many(1)[2]))
    parts = _listed(first[1:])
    order = sorted([part[i] for part in parts] for i in range(2))
    return [_listed(sizes), _listed(first[0]), order, _listed(second)]


def names_of_a_barrier(tf, run):
    barrier = _barrier(tf)
    indices, keys, values = barrier.take_many(2)
    small = barrier.take_many(2, allow_small_batch=True)
    return [
        barrier.name,
        barrier.insert_many(0, ["a"], ["b"]).name,
        indices.op.name,
        [_shape(tensor) for tensor in (indices, keys, *values)],
        [_shape(tensor) for tensor in (small[0], small[1], *small[2])],
        barrier.ready_size().op.name,
        barrier.incomplete_size().op.name,
        barrier.close().name,
    ]


def what_a_closed_barrier_gives(tf, run):
    barrier = _barrier(tf)
    run(barrier.insert_many(0, ["k1", "k2"], ["a", "b"]))
    run(barrier.close())
    for key in ("k1", "k2"):
        run(barrier.insert_many(1, [key], [[1, 2]]))
    taken = barrier.take_many(5, allow_small_batch=True)
    return _listed([run(taken[0]), run(barrier.ready_size())])


def a_component_that_a_barrier_has(tf, run):
    barrier = _barrier(tf)
    run(barrier.insert_many(0, ["k"], ["a"]))
    run(barrier.insert_many(0, ["k"], ["b"]))


def a_new_key_for_a_closed_barrier(tf, run):
    barrier = _barrier(tf)
    run(barrier.insert_many(0, ["k"], ["a"]))
    run(barrier.close())
    run(barrier.insert_many(0, ["l"], ["b"]))


def completing_in_a_cancelled_barrier(tf, run):
    barrier = _barrier(tf)
    run(barrier.insert_many(0, ["k"], ["a"]))
    run(barrier.close(cancel_pending_enqueues=True))
    run(barrier.insert_many(1, ["k"], [[1, 2]]))


def too_many_from_a_closed_barrier(tf, run):
    barrier = _barrier(tf)
    run(barrier.close())
    run(barrier.take_many(1)[0])


def closing_a_closed_barrier(tf, run):
    barrier = _barrier(tf)
    run(barrier.close())
    run(barrier.close())


def a_barrier_of_empty_tensors(tf, run):
    _class(tf, "Barrier")((tf.string,), shapes=((0,),))


def a_staging_area(tf, run):
    area = _class(tf, "StagingArea")([tf.int32, tf.float32], shapes=[[], [2]])
    for i in range(3):
        run(area.put([tf.constant(i), tf.constant([i * 1.5, 1.0])]))
    size = run(area.size())
    found = [run(area.peek(1)), run(area.get()), run(area.peek(0)), run(area.get())]
    run(area.clear())
    return _listed([size, found, run(area.size())])


def properties_of_a_staging_area(tf, run):
    area = _class(tf, "StagingArea")([tf.int32], shapes=[[2]], capacity=3, memory_limit=100)
    named = _class(tf, "StagingArea")([tf.int32], names=["x"], shared_name="mine")
    one = tf.constant([1, 2])
    return [
        [area.name, area.capacity, area.memory_limit, area.names, len(area.dtypes)],
        [shape.as_list() for shape in area.shapes],
        [named.name, named.names, sorted(named.get())],
        [area.put(one).name, area.size().op.name, area.clear().name],
        [area.get()[0].op.type != "", len(area.get()), _shape(area.get()[0])],
    ]


def dictionaries_in_a_staging_area(tf, run):
    area = _class(tf, "StagingArea")([tf.int32, tf.int32], names=["x", "y"])
    run(area.put({"y": tf.constant(1), "x": tf.constant(2)}))
    return _listed(run(area.get()))


def a_list_for_a_staging_area_of_names(tf, run):
    _class(tf, "StagingArea")([tf.int32], names=["x"]).put([tf.constant(1)])


def another_dtype_for_a_staging_area(tf, run):
    _class(tf, "StagingArea")([tf.int32]).put([tf.constant(1.0)])


def another_shape_for_a_staging_area(tf, run):
    _class(tf, "StagingArea")([tf.int32], shapes=[[2]]).put([tf.constant([1, 2, 3])])


def too_many_components_for_a_staging_area(tf, run):
    _class(tf, "StagingArea")([tf.int32]).put([tf.constant(1), tf.constant(1)])


def an_element_beyond_the_memory_limit(tf, run):
    area = _class(tf, "StagingArea")([tf.int32], memory_limit=8)
    run(area.put([tf.constant([1, 2, 3])]))


PROGRAMS = {
    name: made for name, made in sorted(globals().items()) if callable(made) and name[0] != "_"
}
