"""Devices: what each must do, what it may offer besides, its options and its limits."""
