"""What a program has said through ``hr.config``, and the settings of sessions that follow."""

from __future__ import annotations

from typing import Any, final

from headrace.session.config import Config
from headrace.session.default_configs import set_default_config


@final
class State:
    """All that was said, in one process.

    Attributes:
        intra_op: How many threads kernels use; 0 for all cores.
        inter_op: How many operations run at one time; 0 for as many as ``hr.Config`` would.
        soft_placement: Whether operations may run elsewhere.
        jit: Whether TensorFlow would compile steps; ours are compiled in any case.
        passes: Switches of TensorFlow's rewriting passes, by name.
        counts: How many devices of a kind sessions have, where that was said.
        grows: By device, whether it takes memory as it is needed.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Take back all that was said."""
        self.intra_op = self.inter_op = 0
        self.soft_placement = self.jit = False
        self.passes: dict[str, bool] = {}
        self.counts: dict[str, int] = {}
        self.grows: dict[Any, bool] = {}
        set_default_config("", None)

    def change(self, **values: Any) -> None:
        """Set attributes; sessions that are opened from now on go by them.

        Args:
            **values: Attributes by name.

        Raises:
            ConfigError: if sessions cannot run so; nothing is changed then.
        """
        before = {name: getattr(self, name) for name in values}
        for name, value in values.items():
            setattr(self, name, value)
        try:
            config = Config(
                threads=self.intra_op or None,
                inter_op_threads=self.inter_op or None,
                allow_soft_placement=self.soft_placement,
                optimize=not self.passes.get("disable_meta_optimizer", False),
                device_count=self.counts or None,
            )
        except BaseException:
            for name, value in before.items():
                setattr(self, name, value)
            raise
        set_default_config("", config)


STATE = State()
