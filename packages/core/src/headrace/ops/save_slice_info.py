"""What a variable that is a part of a larger one says of itself."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class SaveSliceInfo:
    """Which part of a whole a variable is, by which checkpoints keep all parts under one name.

    Attributes:
        full_name: The name of the whole.
        full_shape: The shape of the whole.
        var_offset: At which index of each axis the variable begins.
        var_shape: The shape of the variable.
    """

    full_name: str = ""
    full_shape: list[int] = field(default_factory=list)
    var_offset: list[int] = field(default_factory=list)
    var_shape: list[int] = field(default_factory=list)

    @property
    def spec(self) -> str:
        """The part in the notation of TensorFlow's checkpoints: ``"10 3 0,5:0,3"``."""
        whole = "".join(f"{size} " for size in self.full_shape)
        pairs = zip(self.var_offset, self.var_shape, strict=True)
        return whole + ":".join(f"{begin},{length}" for begin, length in pairs)
