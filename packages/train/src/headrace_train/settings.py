"""The settings of the package: what it reads from the environment."""

from __future__ import annotations

from headrace.extend.settings import Setting, choice, text

DATA = Setting[str | None](
    "HEADRACE_DATA", text, None, "folder of data sets, with a sub-folder for each (mnist, ...)"
)
SUMMARY_RANKS = Setting[str](
    "HEADRACE_SUMMARY_RANKS",
    choice("chief", "all"),
    "chief",
    "which ranks of a job write summaries: chief or all",
)
SETTINGS = (DATA, SUMMARY_RANKS)
