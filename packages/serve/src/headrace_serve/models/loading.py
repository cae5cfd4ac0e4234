"""Loading a saved model for serving: its session, and its signatures."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import headrace as hr
from headrace.errors import InvalidArgumentError
from headrace_serve.models.model import LoadedModel
from headrace_serve.models.signature import PREDICT, Signature, TensorInfo

_LOG = logging.getLogger("headrace.serve")


def is_saved_model(folder: Path) -> bool:
    """Whether a folder looks like a saved model."""
    return hr.saved_model.maybe_saved_model_directory(folder)


def load(folder: Path) -> LoadedModel:
    """Load the graph of a saved model that is for serving, or the only one.

    Raises:
        HeadraceError: if there is none, or it is damaged, or has no signature to answer for.
    """
    model = hr.saved_model.Model(folder)
    try:
        return loaded(model)
    except BaseException:
        model.close()
        raise


def loaded(model: hr.saved_model.Model) -> LoadedModel:
    """Return the signatures of a model that is loaded.

    Those that take or return sparse tensors, for which JSON has no form, are left out.

    Raises:
        InvalidArgumentError: if none is left.
    """
    signatures: dict[str, Signature] = {}
    for name, signature in model.signatures.items():
        inputs, outputs = _dense(signature.inputs), _dense(signature.outputs)
        if inputs is None or outputs is None:
            _LOG.warning("the signature %r is left out: it takes or returns sparse tensors", name)
            continue
        if not outputs:
            continue
        # What can be done before the first request comes.
        signature.prepare()
        method = signature.method_name or PREDICT
        signatures[name] = Signature(inputs, outputs, signature, method)
    if not signatures:
        raise InvalidArgumentError(
            f"the model has no signature to answer for; it has {list(model.signatures) or 'none'}"
        )
    return LoadedModel(signatures, model.close)


def _dense(tensors: Mapping[str, hr.Tensor | hr.SparseTensor]) -> dict[str, TensorInfo] | None:
    """Return what there is to say of tensors; None where one is sparse."""
    dense = {name: tensor for name, tensor in tensors.items() if isinstance(tensor, hr.Tensor)}
    if len(dense) < len(tensors):
        return None
    return {name: TensorInfo.of(tensor) for name, tensor in dense.items()}
