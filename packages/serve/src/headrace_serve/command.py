"""``python -m headrace serve``: answers for saved models until it is told to stop."""

from __future__ import annotations

import argparse
import logging
import sys
import warnings

from headrace.errors import ConfigError
from headrace_serve.http.server import Server, stopped_by_signals
from headrace_serve.limits import Batching, Limits

_BATCHING = Batching()
_LIMITS = Limits()


def main(words: list[str]) -> int:
    """Serve.

    Args:
        words: What follows ``serve`` on the command line.

    Returns:
        0 if it was told to stop and every request was answered.

    Raises:
        HeadraceError: if it cannot start, or requests were left without an answer.
    """
    options = _parser().parse_args(words)
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    batching = Batching(
        max_batch_size=options.max_batch_size,
        max_delay=options.max_delay,
        max_queue=options.max_queue,
        steps=options.steps,
        pad=not options.no_pad,
    )
    limits = Limits(
        max_body=options.max_body,
        read_timeout=options.read_timeout,
        timeout=options.timeout,
        keep_alive=options.keep_alive,
        max_connections=options.max_connections,
        grace=options.grace,
    )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", RuntimeWarning)
        server = Server(
            _models(options.model, options.name),
            host=options.host,
            port=options.port,
            batching=batching,
            limits=limits,
            poll=options.poll,
        )
    for warning in said:
        sys.stderr.write(f"warning: {warning.message}\n")
    with stopped_by_signals(server.request_stop):
        server.start()
        for name, model in server.application.models.items():
            numbers = ", ".join(map(str, model.versions))
            sys.stdout.write(f"{server.url}/v1/models/{name} answers: versions {numbers}\n")
        sys.stdout.flush()
        server.wait()
        server.stop()
    sys.stdout.write("stopped\n")
    return 0


def _models(words: list[str], name: str) -> dict[str, str]:
    """Return the folders of models by name; an empty name stands for that of the folder."""
    models: dict[str, str] = {}
    for word in words:
        given, separator, folder = word.partition("=")
        if not separator:
            given, folder = name, word
        if given in models or (name and len(words) > 1):
            raise ConfigError("with several models, name each: expected NAME=FOLDER NAME=FOLDER")
        models[given] = folder
    return models


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m headrace serve",
        description="Answer for saved models over HTTP, in the form of TensorFlow Serving's REST "
        "interface, until SIGTERM or SIGINT. Then requests in flight are answered and new ones "
        "refused.",
    )
    parser.add_argument(
        "model",
        nargs="+",
        metavar="MODEL",
        help="folder of a saved model, or of such folders called by the numbers of versions; "
        "NAME=FOLDER gives it a name",
    )
    parser.add_argument("--name", default="", help="name of the model; default: the folder's")

    def add(flag: str, kind: type, default: object, text: str) -> None:
        parser.add_argument(flag, type=kind, default=default, help=f"{text}; default: %(default)s")

    add("--host", str, "127.0.0.1", "address to listen on")
    add("--port", int, 8501, "port to listen on, 0 for a free one")
    add("--max-batch-size", int, _BATCHING.max_batch_size, "most rows in a step of many requests")
    add("--max-delay", float, _BATCHING.max_delay, "seconds that a request waits for others")
    add("--max-queue", int, _BATCHING.max_queue, "most requests that wait for a step")
    parser.add_argument("--no-pad", action="store_true", help="leave steps at the rows they have")
    add("--steps", int, _BATCHING.steps, "most steps of a signature at the same time")
    add("--max-body", int, _LIMITS.max_body, "most bytes of a request")
    add("--read-timeout", float, _LIMITS.read_timeout, "seconds in which a request must arrive")
    add("--timeout", float, _LIMITS.timeout, "seconds in which the model must answer")
    add("--keep-alive", float, _LIMITS.keep_alive, "seconds that an idle connection stays open")
    add("--max-connections", int, _LIMITS.max_connections, "most connections")
    add("--grace", float, _LIMITS.grace, "seconds to finish what is in flight")
    add("--poll", float, 0.0, "seconds after which folders are looked at for versions, 0: once")
    return parser
