"""Headrace graphs across MPI ranks."""

from __future__ import annotations

from headrace_mpi.cluster import Cluster as Cluster

__all__ = ["Cluster"]
