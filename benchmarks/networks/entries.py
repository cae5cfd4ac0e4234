"""Who takes part in the workloads that train networks."""

from __future__ import annotations

from benchmarks.workload import Entry

_PEERS = (
    Entry("torch", "eager channels_last"),
    Entry("torch", "eager NCHW"),
    Entry("torch", "compile"),
    Entry("tensorflow", "Session.run"),
    Entry("jax", "jit"),
)


def convolutional(*, small: bool = False) -> tuple[Entry, ...]:
    """Return the entries of a convolutional network.

    Args:
        small: whether it is small enough for the plain executor to take part.
    """
    return (
        Entry("headrace", "Session.run"),
        Entry("headrace", "make_callable"),
        *([Entry("headrace", "plain executor")] if small else []),
        Entry("headrace", "without oneDNN"),
        *_PEERS,
        Entry("onednn", "convolutions and products alone", module="limit", limit=True),
    )


def dense() -> tuple[Entry, ...]:
    """Return the entries of a network of dense layers."""
    return (
        Entry("headrace", "Session.run"),
        Entry("headrace", "make_callable"),
        Entry("headrace", "plain executor"),
        Entry("headrace", "without oneDNN"),
        Entry("numpy", "by hand"),
        Entry("torch", "eager"),
        Entry("torch", "compile"),
        Entry("tensorflow", "Session.run"),
        Entry("tensorflow", "make_callable"),
        Entry("jax", "jit"),
        Entry("numpy", "the products alone", module="products", limit=True),
    )
