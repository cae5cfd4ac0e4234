"""Small monitored programs, each a list of what happened, for Headrace and for TensorFlow.

A program gets the library, and ``log``, which notes what happens. Python 3.7 reads this file.
"""

from __future__ import annotations

import json
import threading

METHODS = ("begin", "after_create_session", "before_run", "after_run", "end")
ERRORS = ("ValueError", "OutOfRangeError", "StopIteration", "AbortedError", "UnavailableError")


def error_of(lib, kind):
    """Return an error of a kind, which is one of Python's or of the library."""
    found = getattr(lib.errors, kind, None)
    if found is not None:
        return found(None, None, "boom")
    return {"ValueError": ValueError, "StopIteration": StopIteration, "KeyError": KeyError}[kind](
        "boom"
    )


def make_hook(lib, log, name, fails=None, kind="ValueError", at=1, request_stop_at=None, args=None):
    """Return a hook that notes each call, and raises in the ``at``-th one of a method."""
    calls = {}

    def note(method):
        calls[method] = calls.get(method, 0) + 1
        log.append(name + "." + method)
        if method == fails and calls[method] == at:
            raise error_of(lib, kind)
        return calls[method]

    class Hook(lib.train.SessionRunHook):
        def begin(self):
            note("begin")

        def after_create_session(self, session, coord):
            note("after_create_session")

        def before_run(self, run_context):
            note("before_run")
            return args

        def after_run(self, run_context, run_values):
            count = note("after_run")
            if args is not None:
                log.append(name + " got " + json.dumps(run_values.results, default=int))
            if count == request_stop_at:
                run_context.request_stop()

        def end(self, session):
            note("end")

    return Hook()


def family(lib, error):
    """Return the names of all the kinds of which an error is, by which programs catch it."""
    kinds = [
        kind
        for kind in ("OutOfRangeError", "AbortedError", "UnavailableError", "InvalidArgumentError")
        if isinstance(error, getattr(lib.errors, kind))
    ]
    builtin = (StopIteration, KeyboardInterrupt, TypeError, ValueError, RuntimeError)
    kinds += [kind.__name__ for kind in builtin if isinstance(error, kind)]
    return "|".join(kinds) or type(error).__name__


def program(lib, log, hooks, body, singular=False):
    """Run a program: its hooks, its loop, and what leaves the block."""
    with lib.Graph().as_default():
        step = lib.train.get_or_create_global_step()
        train = lib.assign_add(step, 1)
        made = hooks(lib, log, step)
        make = lib.train.SingularMonitoredSession if singular else lib.train.MonitoredSession
        try:
            with make(hooks=made) as session:
                log.append("made")
                body(lib, log, session, train)
                log.append("body done")
        except BaseException as error:
            log.append("left with " + family(lib, error))
        else:
            log.append("left")
        try:
            log.append("should_stop " + str(session.should_stop()))
            session.close()
        except BaseException as error:
            log.append("closing again: " + family(lib, error))


def two_steps(lib, log, session, train):
    for _ in range(2):
        log.append("step " + str(int(session.run(train))))


def until_stop(lib, log, session, train):
    for _ in range(5):
        if session.should_stop():
            return
        log.append("step " + str(int(session.run(train))))


def catching(lib, log, session, train):
    """A loop that catches what a step raises, and asks whether to stop."""
    for _ in range(3):
        try:
            log.append("step " + str(int(session.run(train))))
        except Exception as error:
            log.append("caught " + family(lib, error))
        log.append("should_stop " + str(session.should_stop()))


def past_the_stop(lib, log, session, train):
    for _ in range(3):
        session.run(train)


def raising(kind):
    def body(lib, log, session, train):
        session.run(train)
        raise KeyboardInterrupt if kind == "KeyboardInterrupt" else error_of(lib, kind)

    return body


def failing_step(lib, log, session, train):
    session.run(train)
    session.run("fails:0")


def failing(lib, log, step):
    index = lib.placeholder_with_default(lib.constant(5), [])
    lib.gather(lib.constant([1.0]), index, name="fails")
    return plain(lib, log, step)


def step_function(lib, log, session, train):
    def step_fn(step_context):
        log.append("raw " + str(int(step_context.session.run(train))))
        return int(step_context.run_with_hooks(train))

    log.append("step " + str(session.run_step_fn(step_fn)))


def stopping_step_function(lib, log, session, train):
    session.run_step_fn(lambda step_context: step_context.request_stop())
    log.append("not reached")


def wrong_step_function(lib, log, session, train):
    session.run_step_fn(lambda context: None)


def lost_step_function(lib, log, session, train):
    calls = []

    def step_fn(step_context):
        calls.append(1)
        log.append("call " + str(len(calls)))
        if len(calls) == 1:
            raise error_of(lib, "AbortedError")
        return int(step_context.run_with_hooks(train))

    log.append("step " + str(session.run_step_fn(step_fn)))


def closing(lib, log, session, train):
    session.run(train)
    session.close()


def plain(lib, log, step):
    return [make_hook(lib, log, "a"), make_hook(lib, log, "b")]


def stopping(lib, log, step):
    return [make_hook(lib, log, "a", request_stop_at=2), make_hook(lib, log, "b")]


def threads(kind):
    """Hooks of which one starts a thread that tells the coordinator of an error."""

    def hooks(lib, log, step):
        class Thread(lib.train.SessionRunHook):
            made = 0

            def after_create_session(self, session, coord):
                log.append("thread.after_create_session")
                self.coord = coord
                self.made += 1

            def after_run(self, run_context, run_values):
                if self.made == 1:
                    thread = threading.Thread(target=self.work)
                    thread.start()
                    thread.join()

            def work(self):
                with self.coord.stop_on_exception():
                    if kind is not None:
                        raise error_of(lib, kind)
                    self.coord.request_stop()

            def end(self, session):
                log.append("thread.end")

        return [make_hook(lib, log, "a"), Thread()]

    return hooks


def threads_and_failing(kind):
    """A thread ends with an error, and then a hook raises another one."""

    def hooks(lib, log, step):
        return [*threads(kind)(lib, log, step), make_hook(lib, log, "b", "after_run", "KeyError")]

    return hooks


def fetching(lib, log, step):
    arguments = lib.train.SessionRunArgs
    return [
        make_hook(lib, log, "a", args=arguments(step * 0 + 10)),
        make_hook(lib, log, "b", args=arguments({"x": step * 0, "y": [step * 0 + 2]})),
        make_hook(lib, log, "c", args=arguments(None)),
    ]


def feeding(same):
    def hooks(lib, log, step):
        x = lib.placeholder_with_default(lib.constant(1), [], name="x")
        y = lib.placeholder_with_default(lib.constant(2), [], name="y")
        arguments = lib.train.SessionRunArgs
        return [
            make_hook(lib, log, "a", args=arguments(x + y, {x: 30})),
            make_hook(lib, log, "b", args=arguments(x * y, {(x if same else y): 50})),
        ]

    return hooks


def feeding_too(lib, log, session, train):
    x = session.graph.get_tensor_by_name("x:0")
    session.run(train, feed_dict={x: 5})


def _cases():
    found = {
        "two steps": (plain, two_steps, False),
        "until a hook stops": (stopping, until_stop, False),
        "past the stop": (stopping, past_the_stop, False),
        "catching past the stop": (stopping, catching, False),
        "fetches of hooks": (fetching, two_steps, False),
        "feeds of hooks": (feeding(False), two_steps, False),
        "two hooks feed one": (feeding(True), two_steps, False),
        "user feeds too": (feeding(False), feeding_too, False),
        "failing step": (failing, failing_step, False),
        "closing": (plain, closing, False),
        "step function": (plain, step_function, False),
        "stopping step function": (plain, stopping_step_function, False),
        "wrong step function": (plain, wrong_step_function, False),
        "lost step function": (plain, lost_step_function, False),
        "lost step function, singular": (plain, lost_step_function, True),
        "thread requests a stop": (threads(None), until_stop, False),
    }
    for singular in (False, True):
        suffix = ", singular" if singular else ""
        for method in METHODS:
            for kind in ERRORS:
                # TensorFlow makes sessions for ever where each one is lost at once; this one is
                # lost once.
                def hooks(lib, log, step, method=method, kind=kind):
                    return [
                        make_hook(lib, log, "a"),
                        make_hook(lib, log, "b", method, kind),
                        make_hook(lib, log, "c"),
                    ]

                found[kind + " in " + method + suffix] = (hooks, two_steps, singular)
        for method in ("before_run", "after_run"):

            def hooks(lib, log, step, method=method):
                return [make_hook(lib, log, "a"), make_hook(lib, log, "b", method, "ValueError")]

            found["caught in " + method + suffix] = (hooks, catching, singular)
        for kind in (*ERRORS, "KeyboardInterrupt", "KeyError"):
            found[kind + " in the body" + suffix] = (plain, raising(kind), singular)
        for kind in ("ValueError", "AbortedError", "OutOfRangeError"):
            found[kind + " in a thread" + suffix] = (threads(kind), until_stop, singular)
            found[kind + " in a thread, two steps" + suffix] = (threads(kind), two_steps, singular)
            found[kind + " in a thread and a hook" + suffix] = (
                threads_and_failing(kind),
                two_steps,
                singular,
            )
    return found


CASES = _cases()


def record(lib, name):
    """Return what happens in a program."""
    hooks, body, singular = CASES[name]
    log = []
    program(lib, log, hooks, body, singular)
    return log
