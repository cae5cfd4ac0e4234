"""The options of the package's devices: what sessions may ask of them."""

from __future__ import annotations

from headrace.extend.devices import DeviceOption

PRECISION_OPTION = DeviceOption(
    "precision",
    "highest",
    lambda v: v in ("highest", "tf32"),
    '"highest" or "tf32"',
    "with which bits of float32 GPUs multiply matrices and convolve: all of them, or the 10 bits "
    "of the fraction that tensor cores take (sums are float32)",
    shorthand=True,
)
OPTIONS = (PRECISION_OPTION,)
