"""Summaries: what steps tell of themselves, and the event files in which TensorBoard finds it."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace_io.protos import Event as Event
    from headrace_io.protos import SessionLog as SessionLog
    from headrace_io.protos import Summary as Summary
    from headrace_io.protos import SummaryDescription as SummaryDescription
    from headrace_io.protos import TaggedRunMetadata as TaggedRunMetadata
    from headrace_train.summary.descriptions import (
        get_summary_description as get_summary_description,
    )
    from headrace_train.summary.functions import audio as audio
    from headrace_train.summary.functions import histogram as histogram
    from headrace_train.summary.functions import image as image
    from headrace_train.summary.functions import merge as merge
    from headrace_train.summary.functions import merge_all as merge_all
    from headrace_train.summary.functions import scalar as scalar
    from headrace_train.summary.functions import tensor_summary as tensor_summary
    from headrace_train.summary.functions import text as text
    from headrace_train.summary.second import all_v2_summary_ops as all_v2_summary_ops
    from headrace_train.summary.second import initialize as initialize
    from headrace_train.summary.writer import FileWriter as FileWriter
    from headrace_train.summary.writer_cache import FileWriterCache as FileWriterCache

_PROTOS = "headrace_io.protos"
_FUNCTIONS = f"{__name__}.functions"
# Name -> where it stands. Every process that runs steps imports this package for its kernels.
_PLACES = {
    "Event": _PROTOS,
    "FileWriter": f"{__name__}.writer",
    "FileWriterCache": f"{__name__}.writer_cache",
    "SessionLog": _PROTOS,
    "Summary": _PROTOS,
    "SummaryDescription": _PROTOS,
    "TaggedRunMetadata": _PROTOS,
    "all_v2_summary_ops": f"{__name__}.second",
    "audio": _FUNCTIONS,
    "get_summary_description": f"{__name__}.descriptions",
    "histogram": _FUNCTIONS,
    "image": _FUNCTIONS,
    "initialize": f"{__name__}.second",
    "merge": _FUNCTIONS,
    "merge_all": _FUNCTIONS,
    "scalar": _FUNCTIONS,
    "tensor_summary": _FUNCTIONS,
    "text": _FUNCTIONS,
}

__all__ = [
    "Event",
    "FileWriter",
    "FileWriterCache",
    "SessionLog",
    "Summary",
    "SummaryDescription",
    "TaggedRunMetadata",
    "all_v2_summary_ops",
    "audio",
    "get_summary_description",
    "histogram",
    "image",
    "initialize",
    "merge",
    "merge_all",
    "scalar",
    "tensor_summary",
    "text",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(place), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Namespace(ModuleType):
    """This module, of which a call is ``hr.train.model_summary``.

    ``hr.train.summary`` is this module as soon as it is imported, and the function at once.
    """

    def __call__(self, variables: Any = None) -> Any:
        """Return the parameters of a model, as ``hr.train.model_summary`` does."""
        # lazy: few programs ask
        from headrace_train.parameters import model_summary

        return model_summary(variables)


sys.modules[__name__].__class__ = _Namespace
