"""Looks at every page of the built documentation in Chromium: wide and light, narrow and dark.

``python tests/docs/render_site.py docs/_build/html`` reports what reaches over the window's right
border, texts that leave their drawing or cannot be read on their ground, errors of the console, and
requests to other hosts. ``--pictures FOLDER`` keeps a picture of each page that is named behind
it. ``nox -s site`` runs it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from browser import Browser, find_browser

# What reaches over the border goes by the width, what cannot be read by the scheme: two looks do.
LOOKS = ((1400, 1000, "light"), (390, 844, "dark"))
# Sources of modules are made by Sphinx, as long as the modules are, and all alike.
_LEFT_OUT = ("_modules", "_static", "_sources")

# What the page says of itself: a list of problems.
_LOOK = r"""
(() => {
  const found = [];
  const wide = document.documentElement.clientWidth;
  const root = document.scrollingElement;
  if (root.scrollWidth > wide) {
    // What scrolls by itself may be wider than the window; name what does not.
    for (const element of document.body.querySelectorAll("*")) {
      if (element.closest("svg") !== element && element.closest("svg")) continue;
      const box = element.getBoundingClientRect();
      let held = box.width === 0 || box.right <= wide + 1;
      for (let e = element.parentElement; e && !held; e = e.parentElement) {
        held = getComputedStyle(e).overflowX !== "visible" && e !== document.body;
      }
      if (!held) {
        found.push(`reaches ${Math.round(box.right - wide)} px over the border: ` +
          `<${element.localName} class="${element.getAttribute("class") || ""}"> ` +
          element.textContent.trim().slice(0, 60));
        break;
      }
    }
    if (!found.length) found.push(`is ${root.scrollWidth} px wide in a window of ${wide} px`);
  }
  const part = (color) => color.match(/[\d.]+/g).map(Number);
  const light = (color) => {
    const [r, g, b] = part(color).slice(0, 3).map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  for (const svg of document.querySelectorAll("svg.headrace-drawing")) {
    const frame = svg.getBoundingClientRect();
    if (!frame.width) continue;
    const scale = frame.width / svg.viewBox.baseVal.width;
    const ground = getComputedStyle(svg.querySelector("rect")).fill;
    for (const text of svg.querySelectorAll("text")) {
      const box = text.getBoundingClientRect();
      if (box.left < frame.left - 1 || box.right > frame.right + 1 ||
          box.top < frame.top - 1 || box.bottom > frame.bottom + 1) {
        found.push(`a text leaves its drawing: ${text.textContent}`);
      }
      const size = parseFloat(getComputedStyle(text).fontSize) * scale;
      if (size < 8.5) {
        found.push(`a text of ${size.toFixed(1)} px in a drawing: ${text.textContent}`);
      }
      const both = [light(getComputedStyle(text).fill), light(ground)];
      if ((Math.max(...both) + 0.05) / (Math.min(...both) + 0.05) < 4.5) {
        found.push(`a text of too little contrast in a drawing: ${text.textContent}`);
      }
    }
  }
  return [...new Set(found)];
})()
"""


def pages_in(folder: Path) -> list[Path]:
    """Return the pages to look at."""
    found = sorted(folder.rglob("*.html"))
    return [path for path in found if not set(_LEFT_OUT) & set(path.relative_to(folder).parts)]


def look(browser: Browser) -> Iterator[str]:
    """Yield what is wrong with the page that is open."""
    yield from browser.run(_LOOK)
    for message in browser.messages:
        yield f"console: {message}"
    for address in dict.fromkeys(browser.requests):
        if not address.startswith(("file:", "data:", "about:")):
            yield f"asks for {address}"
    browser.messages.clear()
    browser.requests.clear()


def main(arguments: list[str]) -> int:
    """Look at the pages; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the built documentation")
    parser.add_argument("--pictures", nargs="+", metavar="FOLDER PAGE", default=[])
    options = parser.parse_args(arguments)
    program = find_browser()
    if program is None:
        sys.stdout.write("SKIPPED: no Chromium here; install it, or name it in CHROMIUM\n")
        return 0
    pages = pages_in(options.folder)
    if not pages:
        parser.error(f"there are no pages in {options.folder}: build them with nox -s docs")
    kept = set(options.pictures[1:])

    def look_at_all(width: int, height: int, scheme: str) -> list[str]:
        """Return what is wrong at one size and scheme, by a browser of its own."""
        found = []
        with Browser(program) as browser:
            browser.size(width, height, scheme)
            for path in pages:
                name = str(path.relative_to(options.folder))
                browser.open(path.resolve().as_uri())
                found += [f"{name} at {width} px, {scheme}: {what}" for what in look(browser)]
                if name in kept:
                    stem = name.replace("/", "-").removesuffix(".html")
                    picture = Path(options.pictures[0], f"{stem}-{width}-{scheme}.png")
                    picture.write_bytes(browser.picture(whole=True))
        return found

    # Browsers mostly wait, for pages and for this program: one for each look.
    with ThreadPoolExecutor(len(LOOKS)) as threads:
        problems = [
            line for lines in threads.map(look_at_all, *zip(*LOOKS, strict=True)) for line in lines
        ]
    looks = len(pages) * len(LOOKS)
    sys.stdout.write("".join(f"{line}\n" for line in problems))
    sys.stdout.write(f"{len(pages)} pages, {looks} looks: {len(problems)} problems\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
