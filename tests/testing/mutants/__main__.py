"""The process in which faults are tried.

It reads names of mutants, forks a child for each, in which the plugin is loaded with its fault and
checked, and answers with what the kit said. ``python -m tests.testing.mutants --write`` makes the
page of the documentation anew.
"""

from __future__ import annotations

import json
import linecache
import os
import signal
import sys
import types
from importlib.metadata import EntryPoint, entry_points

from tests.testing.mutants.mutant import COUNT, SOURCE, Mutant, source_of
from tests.testing.mutants.table import MUTANTS, PAGE, page

MODULE = "headrace_mill"
LIMIT_S = 100


def load(module: str, source: str) -> None:
    """Make a module of a source when it is imported, as an entry point does."""
    from importlib.abc import Loader, MetaPathFinder
    from importlib.machinery import ModuleSpec

    file = f"{module}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)

    class Finder(MetaPathFinder, Loader):
        def find_spec(self, name, path=None, target=None):
            return ModuleSpec(name, self, origin=file) if name == module else None

        def create_module(self, spec):
            return None

        def exec_module(self, made: types.ModuleType) -> None:
            exec(compile(source, file, "exec"), made.__dict__)

    sys.meta_path.insert(0, Finder())


def verdict_on(mutant: Mutant | None) -> str:
    """Return what the kit says of the plugin with a fault, or without one; empty if nothing."""
    from headrace.plugins import host as host_module
    from headrace.testing import ConformanceError, check_plugin

    os.environ.update(dict(mutant.env) if mutant else {})
    load(MODULE, source_of(mutant) if mutant else SOURCE.read_text(encoding="utf-8"))
    entries = [*entry_points(group="headrace"), EntryPoint("mill", MODULE, "headrace")]
    if mutant and mutant.beside:
        load("headrace_miller", mutant.beside)
        entries.append(EntryPoint("a_miller", "headrace_miller", "headrace"))
    host_module._HOST = host_module.PluginHost(sorted(entries, key=lambda e: e.name))
    host_module._HOST.ask_all()
    plugin = sys.modules.get(MODULE)
    rows = getattr(plugin, "ROWS", ()) if mutant is None or mutant.rows else ()
    without = {} if rows else dict.fromkeys(COUNT, "it counts")
    try:
        check_plugin(
            "mill",
            rows,
            ops=mutant.ops if mutant else None,
            without=without if hasattr(plugin, "ROWS") else None,
        )
    except ConformanceError as error:
        return str(error)
    return ""


def serve() -> None:
    """Read names of mutants, one per line, and answer with what the kit says of each."""
    import headrace
    import headrace.testing

    # A session loads what all children need.
    with headrace.Graph().as_default(), headrace.Session() as session:
        x = headrace.constant([1.0])
        session.run(headrace.gradients(headrace.sin(x) * 2.0, [x]))
    by_name = {mutant.name: mutant for mutant in MUTANTS}
    for line in sys.stdin:
        name = json.loads(line)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            signal.alarm(LIMIT_S)
            try:
                said = verdict_on(by_name.get(name))
            except BaseException as error:
                said = f"the kit itself fails: {error!r}"
            with os.fdopen(write, "w", encoding="utf-8") as stream:
                json.dump(said, stream)
            os._exit(0)
        os.close(write)
        with os.fdopen(read, encoding="utf-8") as stream:
            answer = stream.read()
        os.waitpid(child, 0)
        sys.stdout.write((answer or json.dumps("the process of the check ended")) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        serve()
