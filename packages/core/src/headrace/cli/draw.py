"""``python -m headrace draw``: graphs, memory plans and timelines as SVG."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from headrace.errors import DocumentError, FeedError, shown
from headrace.graph.graph import Graph
from headrace.graph.tensor import Tensor
from headrace.regular_files import open_regular
from headrace.session.session import Session

WIDTH = 760.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what ``draw`` takes."""
    pictures = parser.add_subparsers(dest="picture", required=True, metavar="PICTURE")

    def add(name: str, text: str, file: str) -> argparse.ArgumentParser:
        made = pictures.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        made.add_argument("file", type=Path, help=file)
        made.add_argument(
            "-o", "--output", type=Path, metavar="SVG", help="file to write; printed if left out"
        )
        return made

    document = "a graph, as Graph.to_document() gives it, written as JSON"
    graph = add("graph", "draw a graph, name scopes collapsed as far as is needed", document)
    graph.add_argument("--scope", default="", help="draw only what is in this name scope")
    graph.add_argument("--boxes", type=int, default=40, help="at most; default: %(default)s")
    graph.set_defaults(draw=_graph)
    memory = add(
        "memory", "draw what lies where in the memory of a step, which is not run", document
    )
    memory.add_argument(
        "--fetch", nargs="+", required=True, metavar="NAME", help="tensors and operations to fetch"
    )
    memory.add_argument(
        "--feed",
        nargs="+",
        default=[],
        metavar="NAME=SHAPE",
        help="fed tensors, each with the shape of its value, as in x:0=50,784",
    )
    memory.set_defaults(draw=_memory)
    trace = "a trace, as Config(trace=...) writes it"
    timeline = add("timeline", "draw which kernels of a step ran when", trace)
    timeline.add_argument("--step", type=int, help="number of the step; the last one if left out")
    timeline.set_defaults(draw=_timeline)
    for picture in (memory, timeline):
        picture.add_argument(
            "--width", type=float, default=WIDTH, help="in pixels; default: %(default)g"
        )


def run(options: argparse.Namespace) -> int:
    """Draw, and write the drawing."""
    drawing: str = options.draw(options)
    if options.output is None:
        sys.stdout.write(drawing + "\n")
    else:
        options.output.write_text(drawing + "\n", encoding="utf-8")
    return 0


def _graph(options: argparse.Namespace) -> str:
    graph = Graph.from_document(_read(options.file))
    return graph.to_svg(scope=options.scope, max_boxes=options.boxes)


def _memory(options: argparse.Namespace) -> str:
    graph = Graph.from_document(_read(options.file))
    feeds = dict(_feed(graph, word) for word in options.feed)
    with Session(graph=graph) as session:
        return session.explain(options.fetch, feeds).memory_svg(width=options.width)


def _timeline(options: argparse.Namespace) -> str:
    # lazy: other drawings need no timeline
    from headrace.drawing.timeline import to_svg

    return to_svg(_read(options.file), step=options.step, width=options.width)


def _feed(graph: Graph, word: str) -> tuple[Tensor, np.ndarray[Any, Any]]:
    """Return a tensor, and a value of the shape that is asked for; nobody looks into it."""
    name, separator, sizes = word.partition("=")
    try:
        shape = [int(size) for size in sizes.split(",") if size]
    except ValueError:
        separator = ""
    if not separator or any(size < 0 for size in shape):
        raise FeedError(f"--feed: expected a name and a shape, as in x:0=50,784; got {shown(word)}")
    tensor = graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
    return tensor, np.zeros(shape, tensor.dtype.numpy)


def _read(path: Path) -> Any:
    try:
        with open_regular(path) as file:
            return json.loads(file.read().decode())
    except OSError as error:
        raise DocumentError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise DocumentError(f"{path} is no JSON: {error}") from error
