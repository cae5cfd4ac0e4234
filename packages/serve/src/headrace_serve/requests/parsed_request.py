"""Parsed requests, which know the form of their response."""

from __future__ import annotations

from dataclasses import dataclass

from headrace_serve.errors import refuse
from headrace_serve.models.model import Version
from headrace_serve.models.signature import CLASSIFY, REGRESS, Array, Arrays
from headrace_serve.requests import responses
from headrace_serve.requests.body import read_object, signature_name
from headrace_serve.requests.examples import example_inputs
from headrace_serve.requests.predict import predict_inputs

_METHOD_NAMES = {"classify": CLASSIFY, "regress": REGRESS}


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A request after parsing.

    Attributes:
        method: ``predict``, ``classify`` or ``regress``.
        signature_name: The name of the signature that is asked.
        inputs: The arrays for it, by name.
        by_rows: Whether there is to be an answer for each row.
    """

    method: str
    signature_name: str
    inputs: dict[str, Array]
    by_rows: bool

    def respond(self, outputs: Arrays) -> bytes:
        """Return what is sent back.

        Raises:
            RequestError: if the outputs do not have the form that was asked for.
        """
        rows = len(next(iter(self.inputs.values()))) if self.by_rows and self.inputs else 0
        if self.method == "classify":
            return responses.write(responses.of_classes(outputs, rows))
        if self.method == "regress":
            return responses.write(responses.of_regression(outputs, rows))
        if self.by_rows:
            return responses.write(responses.by_rows(outputs, rows))
        return responses.write(responses.by_columns(outputs))


def parse_request(version: Version, method: str, body: bytes) -> ParsedRequest:
    """Parse a request.

    Args:
        version: Which is asked.
        method: ``predict``, ``classify`` or ``regress``.
        body: The JSON of the request.

    Raises:
        RequestError: if it is malformed, or does not fit the version.
    """
    request = read_object(body)
    name = signature_name(request)
    signature = version.signature(name)
    expected = _METHOD_NAMES.get(method)
    if expected is None:
        inputs, by_rows = predict_inputs(request, signature)
        return ParsedRequest(method, name, inputs, by_rows)
    if signature.method_name != expected:
        others = [n for n, s in version.signatures.items() if s.method_name == expected]
        known = ", ".join(map(repr, sorted(others))) or "no signature"
        refuse(
            f"the signature {name!r} is for {signature.method_name!r}, and :{method} asks one for "
            f"{expected!r}: {known}"
        )
    return ParsedRequest(method, name, example_inputs(request, signature), by_rows=True)
