"""Signatures: what a model computes from what, as ``hr.saved_model.signature_def_utils``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.dtypes import DType, float32, string
from headrace.errors import ArgumentTypeError, AttributeValueError
from headrace.errors import shown as _shown
from headrace.graph.tensor import Tensor
from headrace.saved_model import signature_constants as names
from headrace.saved_model.messages import SignatureDef, TensorInfo, infos
from headrace.saved_model.utils import build_tensor_info


def build_signature_def(
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Any] | None = None,
    method_name: str | None = None,
) -> SignatureDef:
    """Return a signature of records of tensors.

    Args:
        inputs: What is fed, by name: what ``build_tensor_info`` returns.
        outputs: What is computed, by name.
        method_name: Which kind of request it answers, one of ``signature_constants``.
    """
    return SignatureDef(infos(inputs or {}), infos(outputs or {}), method_name or "")


def predict_signature_def(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> SignatureDef:
    """Return a signature from any tensors to any tensors.

    Args:
        inputs: The tensors that are fed, by name.
        outputs: The tensors that are computed, by name.

    Raises:
        AttributeValueError: if one of both is empty.
    """
    for what, given in (("inputs", inputs), ("outputs", outputs)):
        if not given:
            raise AttributeValueError(
                f"a signature for predictions needs {what}, got {_shown(given)}"
            )
        if not isinstance(given, Mapping):
            raise ArgumentTypeError(
                f"{what} must be a dict of tensors by name, got {_shown(given)}"
            )
    return build_signature_def(
        {key: build_tensor_info(tensor) for key, tensor in inputs.items()},
        {key: build_tensor_info(tensor) for key, tensor in outputs.items()},
        names.PREDICT_METHOD_NAME,
    )


def classification_signature_def(examples: Any, classes: Any, scores: Any) -> SignatureDef:
    """Return a signature from serialized examples to classes and their scores.

    Args:
        examples: [batch], string, the tensor that is fed.
        classes: [batch, classes], string, what they are called; None to leave them out.
        scores: [batch, classes], float32; None to leave them out.

    Raises:
        AttributeValueError: if a tensor is of another dtype, or both outputs are left out.
    """
    found = {names.CLASSIFY_INPUTS: _info("examples", examples, string)}
    if classes is None and scores is None:
        raise AttributeValueError("a classification needs classes, scores or both, got neither")
    outputs = {}
    if classes is not None:
        outputs[names.CLASSIFY_OUTPUT_CLASSES] = _info("classes", classes, string)
    if scores is not None:
        outputs[names.CLASSIFY_OUTPUT_SCORES] = _info("scores", scores, float32)
    return build_signature_def(found, outputs, names.CLASSIFY_METHOD_NAME)


def regression_signature_def(examples: Any, predictions: Any) -> SignatureDef:
    """Return a signature from serialized examples to a number for each.

    Args:
        examples: [batch], string, the tensor that is fed.
        predictions: [batch], float32.

    Raises:
        AttributeValueError: if a tensor is missing or of another dtype.
    """
    inputs = {names.REGRESS_INPUTS: _info("examples", examples, string)}
    outputs = {names.REGRESS_OUTPUTS: _info("predictions", predictions, float32)}
    return build_signature_def(inputs, outputs, names.REGRESS_METHOD_NAME)


def is_valid_signature(signature_def: Any) -> bool:
    """Whether a signature is one of the three forms that servers answer.

    Args:
        signature_def: A signature, or None, which is not valid.
    """
    if signature_def is None:
        return False
    inputs, outputs = signature_def.inputs, signature_def.outputs
    method = signature_def.method_name
    if method == names.PREDICT_METHOD_NAME:
        return bool(inputs) and bool(outputs)
    if method == names.REGRESS_METHOD_NAME:
        wanted = {names.REGRESS_OUTPUTS: float32}
        exact = set(outputs) == set(wanted)
        return exact and _are(inputs, {names.REGRESS_INPUTS: string}) and _are(outputs, wanted)
    if method == names.CLASSIFY_METHOD_NAME:
        wanted = {names.CLASSIFY_OUTPUT_CLASSES: string, names.CLASSIFY_OUTPUT_SCORES: float32}
        if not outputs or not set(outputs) <= set(wanted):
            return False
        given = {key: wanted[key] for key in outputs}
        return _are(inputs, {names.CLASSIFY_INPUTS: string}) and _are(outputs, given)
    return False


def _are(infos_by_name: Mapping[str, Any], wanted: Mapping[str, DType]) -> bool:
    return set(infos_by_name) == set(wanted) and all(
        infos_by_name[key].dtype == dtype.as_datatype_enum for key, dtype in wanted.items()
    )


def _info(what: str, tensor: Any, dtype: DType) -> TensorInfo:
    if not isinstance(tensor, Tensor) or tensor.dtype != dtype:
        found = tensor.dtype if isinstance(tensor, Tensor) else _shown(tensor)
        raise AttributeValueError(f"{what} must be a tensor of {dtype}, got {found}")
    return build_tensor_info(tensor)
