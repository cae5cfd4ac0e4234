"""Answers of saved models over HTTP, in the form of TensorFlow Serving's REST interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.extend.plugins import added_names

if TYPE_CHECKING:
    from headrace_serve.http.application import Application as Application
    from headrace_serve.http.server import Server as Server
    from headrace_serve.limits import Batching as Batching
    from headrace_serve.limits import Limits as Limits
    from headrace_serve.models.model import LoadedModel as LoadedModel
    from headrace_serve.models.signature import CLASSIFY as CLASSIFY
    from headrace_serve.models.signature import PREDICT as PREDICT
    from headrace_serve.models.signature import REGRESS as REGRESS
    from headrace_serve.models.signature import Signature as Signature
    from headrace_serve.models.signature import TensorInfo as TensorInfo
    from headrace_serve.models.signature import signature_of as signature_of

# Module -> its public names. Modules are imported when a program first names one of these.
_FOUND_IN = {
    "http.application": "Application",
    "http.server": "Server",
    "limits": "Batching Limits",
    "models.model": "LoadedModel",
    "models.signature": "CLASSIFY PREDICT REGRESS Signature TensorInfo signature_of",
}

__all__: list[str] = []
__all__ += [name for names in _FOUND_IN.values() for name in names.split()]

if not TYPE_CHECKING:
    __getattr__, __dir__ = added_names("serve", __name__, _FOUND_IN)
