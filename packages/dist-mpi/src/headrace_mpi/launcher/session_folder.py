"""Where ``mpirun`` keeps the files of a job.

Open MPI names the folder after its process, and refuses to start where one of that number is there
already: an ``mpirun`` that was killed leaves its own, and numbers of processes come again.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator

_SETTING = "PRTE_MCA_prte_tmpdir_base"


@contextlib.contextmanager
def session_folder(*, elsewhere: bool) -> Iterator[dict[str, str]]:
    """Yield the variables that give a job a folder of its own, which is gone with the job.

    A folder that somebody chose stays. So does Open MPI's own where no other can be made.

    Args:
        elsewhere: Whether the job has ranks on other hosts, which may not have that folder.
    """
    if elsewhere or _SETTING in os.environ:
        yield {}
        return
    with contextlib.ExitStack() as stack:
        try:
            folder = tempfile.TemporaryDirectory(prefix="headrace-", ignore_cleanup_errors=True)
        except OSError:
            yield {}
            return
        yield {_SETTING: stack.enter_context(folder)}
