"""Large constants travel to a task once for each session, as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ClusterError, DocumentError

pytestmark = pytest.mark.needs("backend-cpu")

VALUES = {
    "float32": np.random.default_rng(0).normal(size=(300, 100)).astype(np.float32),
    "bool": np.arange(20_000) % 3 == 0,
    "complex64": np.full([4000], 1 - 2j, np.complex64),
}


@pytest.mark.ranks(1, 2, 4)
def test_a_constant_goes_to_a_task_once(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    x = hr.placeholder(hr.float32, [])
    values, sums = {}, []
    with hr.device("/job:ps/task:0"):
        v = hr.Variable(0.0, name="v")
        for name, value in VALUES.items():
            there = hr.constant(value, name=name)
            # What depends on state cannot be computed ahead.
            with hr.control_dependencies([hr.assign_add(v, x)]):
                values[name] = hr.identity(there)
        whole = hr.constant(VALUES["float32"])
        sums = [hr.reduce_sum(whole * (v + float(i))) for i in range(4)]
    transport = getattr(cluster.node, "transport", None)
    with hr.Session(cluster.target) as session:
        session.run(v.initializer)
        found = session.run(values, {x: 1.0})
        for name, value in VALUES.items():
            np.testing.assert_array_equal(found[name], value)
        begin = 0 if transport is None else transport.bytes_sent
        for i, total in enumerate(sums):
            expected = VALUES["float32"].sum(dtype=np.float64) * (3 + i)
            np.testing.assert_allclose(session.run(total), expected, rtol=1e-3, atol=1e-2)
        if transport is not None:
            # Four registrations with a constant of 120 kB that is there.
            assert 0 < transport.bytes_sent - begin < 30_000
    if transport is not None:
        # Another session begins anew.
        with hr.Session(cluster.target) as session:
            begin = transport.bytes_sent
            session.run(sums[0])
            sent = transport.bytes_sent - begin
            assert VALUES["float32"].nbytes < sent < 1.1 * VALUES["float32"].nbytes


@pytest.mark.needs("mpi")
def test_damaged_registrations_are_refused() -> None:
    from headrace_mpi.steps.registration import (
        Received,
        pack_registration,
        read_partitions,
        unpack_fields,
    )

    with hr.Graph().as_default() as graph:
        hr.constant(VALUES["float32"], name="c")
    device = hr.DeviceSpec.from_string("/job:ps/task:0/device:CPU:0").to_string()
    payload = pack_registration(1, {device: graph}, [])
    assert len(payload) < 1.05 * VALUES["float32"].nbytes
    fields, arrays = unpack_fields(payload)
    received = Received()
    with pytest.raises(DocumentError, match=r"the array blake2b:\w+ did not come with the docum"):
        read_partitions(fields, received)
    received.held.update(arrays)
    (read,) = read_partitions(fields, received).values()
    np.testing.assert_array_equal(
        read.get_operation_by_name("c").get_attr("value"), VALUES["float32"]
    )
    for cut in (0, 7, 20):
        with pytest.raises(ClusterError, match="is cut off"):
            unpack_fields(payload[:cut])
    with pytest.raises(ClusterError, match="announces"):
        unpack_fields(payload[:-1])
    # Documents on their own hold all that they need, and name nothing else.
    text = graph.to_document()
    start = text.index('"data":"') + 8
    named = text[:start] + "blake2b:00" + text[text.index('"', start) :]
    with pytest.raises(DocumentError, match="expected base64 text"):
        hr.Graph.from_document(named)
