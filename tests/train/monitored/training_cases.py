"""Small programs with the hooks of training, each with what came of it, for both libraries.

A program gets the library and a new folder, and returns what JSON can hold. Python 3.7 reads this
file.
"""

from __future__ import annotations

import logging
import re
import time
from pathlib import Path

import numpy as np


def kinds(error):
    """Return the names of the builtin kinds of which an error is."""
    found = (StopIteration, TypeError, ValueError, RuntimeError, KeyError)
    return "|".join(kind.__name__ for kind in found if isinstance(error, kind))


def attempt(call):
    """Return the kind of the error that a call raises, or what it returns."""
    try:
        found = call()
    except Exception as error:
        return "error " + kinds(error)
    return "made" if isinstance(found, object) and not isinstance(found, (int, str)) else found


def counter(lib):
    """Return the global step, and what counts, late in a step: what reads it does so before."""

    def wait():
        time.sleep(0.004)
        return np.int64(0)

    step = lib.train.get_or_create_global_step()
    with lib.control_dependencies([lib.py_func(wait, [], lib.int64)]):
        return step, lib.assign_add(step, 1)


def events(lib, folder):
    """Return steps and kinds of what event files of a folder hold, in order."""
    found = []
    for path in sorted(Path(str(folder)).glob("events.*")):
        for event in lib.train.summary_iterator(str(path)):
            kind = event.WhichOneof("what")
            if kind == "summary":
                found.append([int(event.step), [value.tag for value in event.summary.value]])
            elif kind == "session_log":
                found.append([int(event.step), int(event.session_log.status)])
            else:
                found.append([int(event.step), kind])
    return found


def checkpoints(lib, folder):
    state = lib.train.get_checkpoint_state(str(folder))
    return [Path(path).name for path in state.all_model_checkpoint_paths]


def loop(lib, train, steps=None, **options):
    """Run a training session until it should stop, or for so many steps; return the last one."""
    last = 0
    with lib.train.MonitoredTrainingSession(**options) as session:
        while not session.should_stop() and (steps is None or steps > 0):
            last = int(session.run(train))
            steps = None if steps is None else steps - 1
    return last


def closed(lib, folder):
    lib.summary.FileWriterCache.clear()
    return events(lib, folder)


def timers(lib, folder):
    timer = lib.train.SecondOrStepTimer(every_steps=3)
    found = [timer.last_triggered_step()]
    for step in (0, 0, 1, 2, 3, 3, 5, 6, 12):
        due = timer.should_trigger_for_step(step)
        found.append(bool(due))
        if due:
            found.append(list(timer.update_last_triggered_step(step))[1])
    timer.reset()
    found += [timer.should_trigger_for_step(12), timer.last_triggered_step()]
    return found


def refused_arguments(lib, folder):
    train = lib.train
    x = lib.constant(1.0)
    path = str(folder)
    calls = [
        train.SecondOrStepTimer,
        lambda: train.SecondOrStepTimer(1, 2),
        train.StopAtStepHook,
        lambda: train.StopAtStepHook(1, 2),
        lambda: train.StepCounterHook(None, None),
        lambda: train.StepCounterHook(1, 2),
        lambda: train.LoggingTensorHook([x]),
        lambda: train.LoggingTensorHook([x], 1, 2),
        lambda: train.LoggingTensorHook([x], 0),
        lambda: train.LoggingTensorHook([x], every_n_iter=-1),
        lambda: train.LoggingTensorHook([x], at_end=True),
        lambda: train.SummarySaverHook(1),
        lambda: train.SummarySaverHook(1, scaffold=train.Scaffold(), summary_op=x),
        lambda: train.SummarySaverHook(summary_op=x),
        lambda: train.SummarySaverHook(1, 2, summary_op=x),
        lambda: train.CheckpointSaverHook(path),
        lambda: train.CheckpointSaverHook(path, 1, 2),
        lambda: train.CheckpointSaverHook(path, 1, saver=x, scaffold=train.Scaffold()),
        lambda: train.ProfilerHook(None, None, path),
        lambda: train.Scaffold(copy_from_scaffold=3),
        lambda: train.SessionManager(ready_for_local_init_op=x),
        train.SessionCreator,
        lambda: train.SessionManager().prepare_session(""),
        lambda: train.SessionManager().prepare_session(
            "", checkpoint_dir=path, checkpoint_filename_with_path=path
        ),
    ]
    return [attempt(call) for call in calls]


def without_global_step(lib, folder):
    train = lib.train
    x = lib.constant("x")
    hooks = [
        train.StopAtStepHook(1),
        train.StepCounterHook(),
        train.SummarySaverHook(1, summary_op=x),
        train.CheckpointSaverHook(str(folder), 1),
        train.GlobalStepWaiterHook(1),
        train.ProfilerHook(1, output_dir=str(folder)),
    ]
    return [attempt(hook.begin) for hook in hooks]


def steps_of_checkpoints(lib, folder):
    _, train = counter(lib)
    hooks = [lib.train.StopAtStepHook(last_step=17)]
    path = str(folder)
    found = [loop(lib, train, checkpoint_dir=path, hooks=hooks, save_checkpoint_steps=4)]
    found.append(checkpoints(lib, folder))
    hooks = [lib.train.StopAtStepHook(num_steps=3)]
    found.append(loop(lib, train, checkpoint_dir=path, hooks=hooks, save_checkpoint_steps=4))
    found.append(checkpoints(lib, folder))
    # The same last step again: one more step is made.
    hooks = [lib.train.StopAtStepHook(last_step=17)]
    found.append(loop(lib, train, checkpoint_dir=path, hooks=hooks))
    found.append(checkpoints(lib, folder))
    found.append((Path(path) / "graph.pbtxt").exists())
    return found


def events_of_training(lib, folder):
    step, train = counter(lib)
    lib.summary.scalar("twice", step * 2)
    loop(
        lib,
        train,
        11,
        checkpoint_dir=str(folder),
        save_checkpoint_steps=5,
        save_summaries_steps=3,
        log_step_count_steps=4,
    )
    return closed(lib, folder)


def summaries_elsewhere(lib, folder):
    step, train = counter(lib)
    lib.summary.scalar("twice", step * 2)
    logs = str(Path(str(folder)) / "logs")
    loop(lib, train, 5, summary_dir=logs, save_summaries_steps=2, log_step_count_steps=None)
    return closed(lib, logs)


def no_summaries(lib, folder):
    _, train = counter(lib)
    loop(
        lib,
        train,
        5,
        checkpoint_dir=str(folder),
        save_summaries_steps=None,
        save_summaries_secs=None,
        save_checkpoint_secs=None,
        save_checkpoint_steps=0,
        log_step_count_steps=0,
    )
    return [closed(lib, folder), lib.train.get_checkpoint_state(str(folder)) is None]


def listeners(lib, folder):
    _, train = counter(lib)
    log = []

    class Listener(lib.train.CheckpointSaverListener):
        def begin(self):
            log.append("begin")

        def before_save(self, session, global_step_value):
            log.append("before " + str(int(global_step_value)))

        def after_save(self, session, global_step_value):
            log.append("after " + str(int(global_step_value)))
            return global_step_value >= 4

        def end(self, session, global_step_value):
            log.append("end " + str(int(global_step_value)))

    hook = lib.train.CheckpointSaverHook(
        str(folder), save_steps=2, listeners=[Listener()], scaffold=lib.train.Scaffold()
    )
    scaffold = hook._scaffold
    with lib.train.MonitoredTrainingSession(hooks=[hook], scaffold=scaffold) as session:
        while not session.should_stop():
            log.append("step " + str(int(session.run(train))))
    return log


def stops(lib, folder):
    """The steps at which loops end, from several beginnings."""
    step, train = counter(lib)
    several = ({"num_steps": 3}, {"last_step": 3}, {"num_steps": 0}, {"last_step": 0})
    hook = lib.train.StopAtStepHook
    found = [loop(lib, train, hooks=[hook(**options)]) for options in several]
    with lib.control_dependencies([train.op]):
        five = lib.assign_add(step, 4)
    found.append(loop(lib, five, hooks=[lib.train.StopAtStepHook(last_step=12)]))
    return found


def final_and_fed(lib, folder):
    x = lib.placeholder(lib.float32, [], name="x")
    step, train = counter(lib)
    doubled = x * 2
    values = iter([1.0, 2.0, 3.0])
    final = lib.train.FinalOpsHook([step, doubled], {x: 21.0})
    found = [final.final_ops_values]
    hooks = [lib.train.FeedFnHook(lambda: {x: next(values)}), final]
    with lib.train.MonitoredSession(hooks=hooks) as session:
        found += [float(session.run([doubled, train])[0]) for _ in range(3)]
    return [*found, [float(value) for value in final.final_ops_values]]


def not_a_number(lib, folder):
    x = lib.placeholder(lib.float32, [])
    found = []
    for fail in (True, False):
        steps = []
        hook = lib.train.NanTensorHook(x, fail_on_nan_loss=fail)

        def run(hook=hook, steps=steps):
            with lib.train.MonitoredSession(hooks=[hook]) as session:
                for value in (1.0, float("inf"), float("nan"), 2.0):
                    if session.should_stop():
                        break
                    session.run(x, {x: value})
                    steps.append(value)

        try:
            run()
        except RuntimeError as error:
            found.append([type(error).__name__, str(error), kinds(error)])
        found.append(len(steps))
    return found


def logged(lib, folder):
    """What is logged of tensors; the times are left out."""
    step, train = counter(lib)
    x = lib.identity(step * 2, name="x")
    y = lib.constant([0.5, 1e-7], name="y")
    found = []

    class Handler(logging.Handler):
        def emit(self, record):
            text = record.getMessage()
            if "=" in text and "Hook" not in text:
                found.append(re.sub(r"\(.* sec\)", "(sec)", text).replace("\n", " "))

    handler = Handler()
    loggers = [logging.getLogger(name) for name in ("tensorflow", "headrace.train")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        for tensors, options in (
            ({"b": y, "a": "x"}, {"every_n_iter": 2}),
            ([x, "y:0"], {"at_end": True}),
            (["y"], {"every_n_iter": 10, "at_end": True}),
            ({"x": x}, {"every_n_iter": 3, "formatter": lambda v: "got =" + str(int(v["x"]))}),
        ):
            hook = lib.train.LoggingTensorHook(tensors, **options)
            with lib.train.MonitoredSession(hooks=[hook]) as session:
                for _ in range(4):
                    session.run(train)
            found.append("-")
    finally:
        for logger, level in zip(loggers, levels):  # noqa: B905 - Python 3.7
            logger.removeHandler(handler)
            logger.setLevel(level)
    # How a tensor itself is printed differs.
    return [re.sub(r"(Tensor\(|<Tensor).*? = ", "tensor = ", text, count=1) for text in found]


def scaffolds(lib, folder):
    """What a scaffold finds and makes."""
    step, _ = counter(lib)
    keys = lib.GraphKeys
    scaffold = lib.train.Scaffold(init_fn=lambda scaffold, session: session.run(step.initializer))
    found = [
        scaffold.init_op is None,
        scaffold.saver is None,
        scaffold.summary_op is None,
        callable(scaffold.init_fn),
    ]
    scaffold.finalize()
    made = (keys.INIT_OP, keys.READY_OP, keys.READY_FOR_LOCAL_INIT_OP, keys.LOCAL_INIT_OP)
    found += [len(lib.get_collection(key)) for key in made]
    found += [len(lib.get_collection(keys.SAVERS)), len(lib.get_collection(keys.SUMMARY_OP))]
    found.append(lib.get_default_graph().finalized)
    copied = lib.train.Scaffold(copy_from_scaffold=scaffold)
    found.append(copied.saver is scaffold.saver and copied.init_op is scaffold.init_op)
    lib.get_default_graph()._unsafe_unfinalize()
    lib.add_to_collection(keys.SAVERS, lib.train.Saver())
    lib.add_to_collection(keys.INIT_OP, lib.no_op())
    found.append(attempt(lambda: lib.train.Scaffold().finalize()))
    return found


def graph_after(lib, folder):
    _, train = counter(lib)
    graph = lib.get_default_graph()
    found = []
    with lib.train.MonitoredSession() as session:
        found += [graph.finalized, session.graph is graph]
        session.run(train)
    found += [graph.finalized, session.graph is None]
    graph.finalize()
    with lib.train.SingularMonitoredSession() as session:
        found.append(session.raw_session() is not None)
    return [*found, graph.finalized, session.raw_session() is None]


def managers(lib, folder):
    step, train = counter(lib)
    local = lib.Variable(3, collections=[lib.GraphKeys.LOCAL_VARIABLES], name="local")
    init = lib.global_variables_initializer()
    saver = lib.train.Saver([step])
    manager = lib.train.SessionManager(
        local_init_op=local.initializer,
        ready_op=lib.report_uninitialized_variables(),
        ready_for_local_init_op=lib.report_uninitialized_variables([step]),
        recovery_wait_secs=1,
    )
    path = str(folder)
    found = [attempt(lambda: manager.prepare_session("", saver=saver, checkpoint_dir=path))]
    session, ready = manager.recover_session("", saver=saver, checkpoint_dir=path)
    found += [ready, sorted(name.decode() for name in session.run(manager._ready_op))]
    session.close()
    called = []
    session = manager.prepare_session(
        "", init_op=init, saver=saver, checkpoint_dir=path, init_fn=called.append
    )
    found += [len(called), int(session.run(train)), int(session.run(local))]
    saver.save(session, str(Path(path) / "model"), global_step=step)
    session.close()
    session, ready = manager.recover_session("", saver=saver, checkpoint_dir=path)
    found += [ready, int(session.run(step)), [Path(p).name for p in saver.last_checkpoints]]
    session.close()
    session = manager.prepare_session(
        "", saver=saver, checkpoint_filename_with_path=str(Path(path) / "model-1")
    )
    found.append(int(session.run(step)))
    try:
        manager.wait_for_session("", max_wait_secs=0)
    except lib.errors.DeadlineExceededError:
        found.append("deadline")
    return found


def supervisors(lib, folder):
    step, train = counter(lib)
    lib.summary.scalar("twice", step * 2)
    supervisor = lib.train.Supervisor(logdir=str(folder), save_model_secs=0, save_summaries_secs=0)
    found = [
        supervisor.is_chief,
        Path(supervisor.save_path).name,
        supervisor.save_model_secs,
        supervisor.global_step is not None,
        supervisor.summary_op is not None,
        lib.get_default_graph().finalized,
    ]
    with supervisor.managed_session() as session:
        for _ in range(3):
            last = int(session.run(train))
        supervisor.summary_computed(session, session.run(supervisor.summary_op))
        supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)
    found += [last, supervisor.should_stop(), checkpoints(lib, folder), events(lib, folder)]
    with supervisor.managed_session() as session:
        found.append(int(session.run(train)))
        raise lib.errors.OutOfRangeError(None, None, "the end")
    return [*found, supervisor.should_stop()]


def supervisor_services(lib, folder):
    step, train = counter(lib)
    lib.summary.scalar("twice", step * 2)
    supervisor = lib.train.Supervisor(logdir=str(folder), save_summaries_secs=1000)
    with supervisor.managed_session() as session:
        session.run(train)
        calls = []
        supervisor.loop(None, lambda: (calls.append(1), supervisor.request_stop()))
        supervisor.wait_for_stop()
    return [len(calls), len(checkpoints(lib, folder))]


def supervisor_errors(lib, folder):
    counter(lib)
    supervisor = lib.train.Supervisor(summary_op=None, saver=None)
    found = [supervisor.start_standard_services(None), supervisor.saver is None]
    found.append(attempt(lambda: supervisor.summary_computed(None, b"")))

    def fails():
        with supervisor.managed_session():
            raise KeyError("boom")

    found.append(attempt(fails))

    def thread_fails():
        with supervisor.managed_session():
            supervisor.loop(None, lambda: {}["boom"])
            supervisor.wait_for_stop()

    found.append(attempt(thread_fails))
    return found


def supervisor_worker(lib, folder):
    counter(lib)
    return attempt(lambda: lib.train.Supervisor(is_chief=False))


def queue_runners(lib, folder):
    queue = lib.FIFOQueue(10, lib.int32, shapes=[[]])
    value = lib.train.limit_epochs(lib.constant(7), 4)
    runner = lib.train.QueueRunner(queue, [queue.enqueue(value)])
    lib.train.add_queue_runner(runner)
    element = queue.dequeue()
    found = []
    with lib.train.MonitoredSession() as session:
        while not session.should_stop():
            found.append(int(session.run(element)))
    return found


def global_steps(lib, folder):
    train = lib.train
    found = [train.get_global_step() is None]
    step = train.create_global_step()
    found += [
        step.name,
        step.dtype.base_dtype.name,
        step.trainable,
        attempt(train.create_global_step),
    ]
    found += [train.get_global_step() is step, train.get_or_create_global_step() is step]
    found += [len(lib.get_collection(lib.GraphKeys.GLOBAL_STEP))]
    for wrong in (3, "x", lib.constant(1.0), lib.constant([1])):
        found.append(attempt(lambda wrong=wrong: train.assert_global_step(wrong)))
    with lib.Session() as session:
        session.run(step.initializer)
        session.run(lib.assign_add(step, 5))
        found += [train.global_step(session, step), type(train.global_step(session, step)).__name__]
    with lib.Graph().as_default() as graph:
        lib.Variable(0.0, name="global_step")
        found.append(attempt(train.get_global_step))
        found.append(attempt(lambda: train.get_or_create_global_step(graph)))
    return found


CASES = {
    function.__name__: function
    for function in (
        timers,
        refused_arguments,
        without_global_step,
        steps_of_checkpoints,
        events_of_training,
        summaries_elsewhere,
        no_summaries,
        listeners,
        stops,
        final_and_fed,
        not_a_number,
        logged,
        scaffolds,
        graph_after,
        managers,
        supervisors,
        supervisor_services,
        supervisor_errors,
        supervisor_worker,
        queue_runners,
        global_steps,
    )
}


def record(lib, name, folder):
    """Return what comes of a program."""
    with lib.Graph().as_default():
        try:
            return CASES[name](lib, folder)
        finally:
            lib.summary.FileWriterCache.clear()
