"""``framework.device``: names of devices."""

from __future__ import annotations

import headrace as hr

DeviceSpecV1 = hr.DeviceSpec
DeviceSpecV2 = hr.DeviceSpec
