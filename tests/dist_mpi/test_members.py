"""What ranks tell each other."""

from __future__ import annotations

from headrace_mpi.membership.members import Member


def test_a_member_survives_its_journey() -> None:
    member = Member(
        3,
        "höst",
        77,
        "ps: 1, worker: 3",
        "/job:worker/task:2",
        "0.1.0",
        ("/job:ps/task:0/device:cpu:0",),
        {"cpu": 0},
    )
    assert Member.unpack(member.pack()) == member
