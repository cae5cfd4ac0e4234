"""Compares all rows, and prints or writes the page of their errors.

python -m tests.oracles --write docs/oracles.md
"""

from __future__ import annotations

import argparse
import platform
import sys
import warnings
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from .compare import DTYPES, Errors, compare, function_named
from .rows import FLOAT32, FLOAT64, Row
from .tables import ROWS, TABLES

HEADER = """# Independent values

Headrace's results beside those of JAX and PyTorch: values, and gradients with respect to every
input that the reference differentiates, weighted by random numbers. The inputs are random but
always the same, and lie away from points where a function has no derivative.

```console
$ pip install nox
$ nox -s oracles -- --write
```

compares all of them and renews this page; without `--write` it is a test run. The rows are in
`tests/oracles`.

## Method

* An **error** is the largest `|ours - theirs| / max(1, |theirs|)` among all elements of a result.
  Both libraries are given the same inputs and compute in the same dtype, so that in float32 an
  error has the rounding of both in it.
* The **tolerance** is {float32} in float32 and {float64} in float64, for values and gradients,
  unless the row has one of its own, and a note says why.
* The **reference** is a function of the other library; where it is given other arguments, or is
  put together of several, `tests/oracles` shows how.
* Shapes and dtypes of results and gradients are compared, too.

## Result

{functions} functions in {rows} rows agree within their tolerances in float32 and float64. The
largest errors among the rows with the usual tolerance:

| | value | gradient |
| --- | --: | --: |
| float32 | {value32} | {gradient32} |
| float64 | {value64} | {gradient64} |

Taken on {date} with {versions}.
"""
COLUMNS = (
    "| function | reference | value, float32 | gradient, float32 | value, float64 "
    "| gradient, float64 | tolerance |\n| --- | --- | --: | --: | --: | --: | --- |\n"
)


def number(error: float) -> str:
    """Return two digits: enough to compare with a tolerance, few enough to stay the same."""
    return f"{error:.1e}" if error else "0"


def short(tolerance: float) -> str:
    return f"{tolerance:g}"


def line(row: Row, errors: dict[str, Errors], note: str) -> str:
    mode = f" ({row.mode})" if row.mode else ""
    references = ", ".join(f"`{name}`" for name in row.reference_names)
    found = [number(e) for d in DTYPES for e in (errors[d].value, errors[d].gradient)]
    tolerance = f"{short(row.float32)}, {short(row.float64)}{note}"
    return "| " + " | ".join([f"`hr.{row.name}`{mode}", references, *found, tolerance]) + " |\n"


def page(results: dict[str, dict[str, Errors]]) -> str:
    """Return the page.

    Args:
        results: errors by dtype, by the row's key.
    """
    usual = [row for row in ROWS if not row.reason]
    largest = {
        kind + dtype[5:]: number(max(getattr(results[row.key][dtype], kind) for row in usual))
        for kind in ("value", "gradient")
        for dtype in DTYPES
    }
    libraries = ["headrace-core", "jax", "torch", "numpy"]
    versions = [f"{name} {version(name)}" for name in libraries]
    text = HEADER.format(
        float32=short(FLOAT32),
        float64=short(FLOAT64),
        functions=len({function_named(row.name) for row in ROWS}),
        rows=len(ROWS),
        date=datetime.now(UTC).date(),
        versions=", ".join([*versions, f"Python {platform.python_version()}"]),
        **largest,
    )
    notes: dict[str, int] = {}
    for title, rows in TABLES.items():
        text += f"\n### {title}\n\n{COLUMNS}"
        for row in rows:
            note = ""
            if row.reason:
                note = f" [{notes.setdefault(row.reason, len(notes) + 1)}]"
            text += line(row, results[row.key], note)
    text += "\n### Notes\n\n"
    return text + "".join(f"{i}. {reason}.\n" for reason, i in notes.items())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracles", description=__doc__)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the page to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results: dict[str, dict[str, Errors]] = {}
    far = []
    for row in ROWS:
        results[row.key] = {dtype: compare(row, dtype) for dtype in DTYPES}
        for dtype, errors in results[row.key].items():
            if max(errors.value, errors.gradient) > row.tolerance(dtype):
                far.append(f"{row.key} in {dtype}: {errors}")
    if far:
        sys.stderr.write("too far from the reference:\n" + "\n".join(far) + "\n")
        return 1
    text = page(results)
    if options.write is None:
        sys.stdout.write(text)
    else:
        options.write.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
