"""T0: every sample of the conformance kit on a device that pretends to be a GPU."""

from __future__ import annotations

import pytest

from headrace.testing import conformance
from headrace.testing.samples import SAMPLES

pytestmark = pytest.mark.usefixtures("pretended_gpus")

test_on_a_pretended_gpu = conformance(
    [row for rows in SAMPLES.values() for row in rows], device="cuda:0"
)
