"""Refusals: what is answered instead of what was asked for, with its HTTP status."""

from __future__ import annotations

from typing import NoReturn

from headrace import errors

BAD_REQUEST = 400
NOT_FOUND = 404
METHOD_NOT_ALLOWED = 405
REQUEST_TIMEOUT = 408
TOO_LARGE = 413
UNSUPPORTED_MEDIA_TYPE = 415
INTERNAL = 500
UNIMPLEMENTED = 501
UNAVAILABLE = 503
GATEWAY_TIMEOUT = 504

# The families of errors of a step -> the status; all others are the server's fault.
_STATUS = {
    errors.INVALID_ARGUMENT: BAD_REQUEST,
    errors.OUT_OF_RANGE: BAD_REQUEST,
    errors.NOT_FOUND: NOT_FOUND,
    errors.ALREADY_EXISTS: 409,
    errors.ABORTED: 409,
    errors.PERMISSION_DENIED: 403,
    errors.UNIMPLEMENTED: UNIMPLEMENTED,
    errors.RESOURCE_EXHAUSTED: UNAVAILABLE,
    errors.UNAVAILABLE: UNAVAILABLE,
    errors.CANCELLED: UNAVAILABLE,
    errors.DEADLINE_EXCEEDED: GATEWAY_TIMEOUT,
}


class RequestError(Exception):
    """A request is not answered.

    Attributes:
        status: The HTTP status.
        message: What is wrong, what was expected and what was got.
        headers: Headers of the answer.
    """

    def __init__(self, status: int, message: str, **headers: str) -> None:
        """Make a refusal; underscores in names of headers stand for hyphens."""
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def refuse(message: str) -> NoReturn:
    """Refuse a request that is malformed.

    Raises:
        RequestError: always, with status 400.
    """
    raise RequestError(BAD_REQUEST, message)


def refusal_of(error: BaseException) -> RequestError:
    """Return the answer to a request whose step raised ``error``."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, errors.OpError):
        return RequestError(_STATUS.get(error.error_code, INTERNAL), str(error))
    if isinstance(error, errors.HeadraceError):
        return RequestError(INTERNAL, str(error))
    return RequestError(INTERNAL, f"the model failed: {type(error).__name__}: {error}")
