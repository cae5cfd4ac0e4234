"""Compiling CUDA C with NVRTC, which needs no GPU, and keeping the result on disk.

A cubin is found again by source, options, architecture and the compiler's version. Files appear
whole or not at all, so any number of processes may share the folder; one that is damaged is made
anew, and a folder that cannot be written only costs the time.
"""

from __future__ import annotations

import functools
import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import ExecutionError, shorten
from headrace.extend.files import SharedFileError, read_private, write_private
from headrace.extend.settings import cache_folder

_DIGEST_BYTES = hashlib.sha256().digest_size


@dataclass(frozen=True, slots=True)
class Program:
    """A source with all that its compilation depends on.

    Attributes:
        name: A file name for messages.
        source: CUDA C++.
        arch: The architecture, as in ``"sm_90"``.
        options: Further options of NVRTC.
    """

    name: str
    source: str
    arch: str
    options: tuple[str, ...] = ("--std=c++17",)

    def key(self, version: Sequence[int]) -> str:
        """Return a name for the program compiled by a version of NVRTC."""
        parts = [".".join(map(str, version)), self.arch, *self.options, self.source]
        digest = hashlib.sha256()
        for part in parts:
            data = part.encode()
            # With their lengths, so that no two lists of parts look the same.
            digest.update(len(data).to_bytes(8, "little") + data)
        return digest.hexdigest()


def cubin(program: Program, folder: Path | None = None) -> bytes:
    """Return a program compiled, from disk where it was compiled before.

    Args:
        program: The program.
        folder: Where compiled programs are kept; the folder ``cuda`` of the cache if None.

    Raises:
        ExecutionError: if it does not compile.
    """
    from cupy.cuda import nvrtc

    place = folder if folder is not None else cache_folder() / "cuda"
    path = place / f"{program.key(nvrtc.getVersion())}.cubin"
    known = _read(path)
    if known is not None:
        return known
    image = compile_cubin(program)[0]
    _write(path, image)
    return image


def compile_cubin(program: Program) -> tuple[bytes, str]:
    """Compile a program; return the cubin and the compiler's messages.

    Raises:
        ExecutionError: if it does not compile; says why.
    """
    from cupy.cuda import nvrtc

    handle = nvrtc.createProgram(program.source, program.name, (), ())
    try:
        try:
            nvrtc.compileProgram(handle, (f"-arch={program.arch}", *program.options))
        except nvrtc.NVRTCError as error:
            lines = [f"{program.name} does not compile for {program.arch}: {error}"]
            lines += [f"  {line}" for line in nvrtc.getProgramLog(handle).splitlines()]
            raise ExecutionError(shorten(lines)) from error
        return bytes(nvrtc.getCUBIN(handle)), str(nvrtc.getProgramLog(handle))
    finally:
        nvrtc.destroyProgram(handle)


def _read(path: Path) -> bytes | None:
    try:
        content = read_private(path)
    except SharedFileError as reason:
        _tell(reason)
        return None
    except OSError:
        return None
    digest, image = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return image if image and hashlib.sha256(image).digest() == digest else None


def _write(path: Path, image: bytes) -> None:
    try:
        write_private(path, hashlib.sha256(image).digest() + image)
    except SharedFileError as reason:
        _tell(reason)
    except OSError:
        # It is compiled again by the next process.
        return


@functools.cache
def _told(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def _tell(reason: SharedFileError) -> None:
    """Say once that programs on disk are not used."""
    _told(
        f"compiled GPU programs on disk are not used: {reason}; or set HEADRACE_CACHE to a folder "
        "that only you can write"
    )
