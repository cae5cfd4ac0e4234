"""Check installed wheels; a program for the interpreter of a clean environment, not for pytest."""

from __future__ import annotations

import importlib
import sys
from importlib.metadata import distribution, entry_points
from importlib.resources import files

WHEELS = {
    "headrace-core": "headrace",
    "headrace-autodiff": "headrace_autodiff",
    "headrace-backend-cpu": "headrace_cpu",
    "headrace-backend-cuda": "headrace_cuda",
    "headrace-data": "headrace_data",
    "headrace-dist-mpi": "headrace_mpi",
    "headrace-io": "headrace_io",
    "headrace-serve": "headrace_serve",
    "headrace-tensorflow": "headrace_tensorflow",
    "headrace-testing": "headrace_testing",
    "headrace-train": "headrace_train",
}


def check(name: str, module: str) -> list[str]:
    """What is wrong with one installed wheel."""
    wrong = []
    package = importlib.import_module(module)
    if "site-packages" not in str(package.__file__):
        wrong.append(f"{module} was imported from {package.__file__}, not from a wheel")
    if not files(module).joinpath("py.typed").is_file():
        wrong.append(f"{name} lacks py.typed")
    shipped = [str(path) for path in distribution(name).files or []]
    if not any(path.endswith("licenses/LICENSE") for path in shipped):
        wrong.append(f"{name} lacks its licence")
    if outside := [
        path for path in shipped if not path.startswith((f"{module}/", f"{module}-", "headrace_"))
    ]:
        wrong.append(f"{name} installs files outside its package: {outside}")
    return wrong


def main() -> int:
    """Report what is wrong with the wheels; the exit status says whether anything is."""
    wrong = [line for name, module in WHEELS.items() for line in check(name, module)]
    plugins = entry_points(group="headrace")
    for plugin in plugins:
        plugin.load()
    if len(plugins) != len(WHEELS) - 1:
        wrong.append(f"expected a plugin from every package but core, got {sorted(plugins.names)}")
    sys.stdout.write(
        "\n".join(wrong or [f"{len(WHEELS)} wheels, {len(plugins)} plugins: good"]) + "\n"
    )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
