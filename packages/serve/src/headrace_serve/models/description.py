"""The status and metadata of models, in TensorFlow Serving's forms."""

from __future__ import annotations

from typing import Any

from headrace_serve.models.model import Model, Version
from headrace_serve.models.signature import Signature, TensorInfo

# TensorFlow's names of dtypes, where they are not the upper case of ours.
_DTYPES = {"float32": "FLOAT", "float64": "DOUBLE", "float16": "HALF"}


def status_of(model: Model, number: int | None) -> dict[str, Any]:
    """Return the status of a version, or of all, the newest first.

    Raises:
        RequestError: if there is no version of that number.
    """
    if number is not None and number not in model.failures:
        model.version(number)
    numbers = [number] if number is not None else sorted({*model.versions, *model.failures})
    return {"model_version_status": [_version_status(model, n) for n in reversed(numbers)]}


def _version_status(model: Model, number: int) -> dict[str, Any]:
    version = model.versions.get(number)
    failure = model.failures.get(number, "")
    return {
        "version": str(number),
        "state": "END" if version is None else version.state,
        "status": {"error_code": "UNKNOWN" if failure else "OK", "error_message": failure},
    }


def metadata_of(name: str, version: Version) -> dict[str, Any]:
    """Return what the signatures of a version take and return."""
    signatures = {key: _signature(value) for key, value in version.signatures.items()}
    return {
        "model_spec": {"name": name, "signature_name": "", "version": str(version.number)},
        "metadata": {"signature_def": {"signature_def": signatures}},
    }


def _signature(signature: Signature) -> dict[str, Any]:
    return {
        "inputs": {name: _tensor(info) for name, info in signature.inputs.items()},
        "outputs": {name: _tensor(info) for name, info in signature.outputs.items()},
        "method_name": signature.method_name,
    }


def _tensor(info: TensorInfo) -> dict[str, Any]:
    sizes = [-1 if size is None else size for size in info.shape or ()]
    shape = {
        "dim": [{"size": str(size), "name": ""} for size in sizes],
        "unknown_rank": info.shape is None,
    }
    dtype = _DTYPES.get(info.dtype.name, info.dtype.name.upper())
    return {"dtype": f"DT_{dtype}", "tensor_shape": shape, "name": info.name}
