"""What MPI says of failed ranks, where it was started to tolerate them (ULFM).

References:
    Bland, Bouteiller, Herault, Bosilca, Dongarra, *Post-failure recovery of MPI communication
    capability: Design and rationale*, IJHPCA 27(3), 2013: acknowledging failures, so that receiving
    from any rank goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpi4py import MPI


def failed_ranks(comm: MPI.Intracomm, error: BaseException) -> list[int]:
    """Return the ranks of ``comm`` whose failure ``error`` tells, none where it tells of no such.

    The failures are acknowledged: calls that receive from any rank work again.
    """
    from mpi4py import MPI

    if not isinstance(error, MPI.Exception):
        return []
    told = {
        getattr(MPI, name, MPI.ERR_LASTCODE)
        for name in ("ERR_PROC_FAILED", "ERR_PROC_FAILED_PENDING")
    }
    if error.Get_error_class() not in told:
        return []
    comm.Ack_failed()
    failed = comm.Get_failed()
    every = comm.Get_group()
    try:
        found = MPI.Group.Translate_ranks(failed, list(range(failed.Get_size())), every)
        return [rank for rank in found if rank >= 0]
    finally:
        failed.Free()
        every.Free()
