"""What the launcher of the tests says of a job that does not end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import MpiRun

PROGRAM = """
import time
from mpi4py import MPI
world = MPI.COMM_WORLD
world.Barrier()
print("begun", flush=True)
if world.rank:
    time.sleep(1000)
else:
    world.recv(source=1)
"""


@pytest.mark.slow
@pytest.mark.needs("mpi")
def test_the_ranks_of_a_job_that_hangs_show_their_lines(mpirun: MpiRun) -> None:
    for timeout_s in (6.0, 30.0):  # A busy machine takes its time to start one.
        with pytest.raises(
            pytest.fail.Exception, match=f"ran longer than {timeout_s} s"
        ) as failure:
            mpirun(2, "-c", PROGRAM, timeout_s=timeout_s)
        said = str(failure.value)
        if "begun\nbegun\n" in said:
            break
    assert 'File "<string>", line 8 in <module>' in said
    assert 'File "<string>", line 10 in <module>' in said
