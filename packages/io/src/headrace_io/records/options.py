"""How a file of records is compressed."""

from __future__ import annotations

from typing import Any, ClassVar, final

from headrace.errors import AttributeValueError, shown


@final
class TFRecordCompressionType:
    """Names for the compressions of files of records."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


class TFRecordOptions:
    """How a file of records is compressed, for those who read or write it.

    All but the first are for writing, and for zlib, whose defaults stand for None.

    Attributes:
        compression_type: ``"GZIP"``, ``"ZLIB"``, ``""``, a ``TFRecordCompressionType``, or other
            options whose compression it is.
        flush_mode: How to flush after each buffer of input, such as ``zlib.Z_SYNC_FLUSH``.
        input_buffer_size: How many bytes are compressed at a time.
        output_buffer_size: How many bytes are written at a time.
        window_bits: The size of the window, as zlib counts it.
        compression_level: 0 to 9.
        compression_method: ``zlib.DEFLATED``.
        mem_level: 1 to 9.
        compression_strategy: Such as ``zlib.Z_DEFAULT_STRATEGY``.
    """

    compression_type_map: ClassVar[dict[int, str]] = {
        TFRecordCompressionType.ZLIB: "ZLIB",
        TFRecordCompressionType.GZIP: "GZIP",
        TFRecordCompressionType.NONE: "",
    }

    def __init__(
        self,
        compression_type: Any = None,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        """Set them.

        Raises:
            AttributeValueError: if the compression is none.
        """
        self.get_compression_type_string(compression_type)
        self.compression_type = compression_type
        self.flush_mode = flush_mode
        self.input_buffer_size = input_buffer_size
        self.output_buffer_size = output_buffer_size
        self.window_bits = window_bits
        self.compression_level = compression_level
        self.compression_method = compression_method
        self.mem_level = mem_level
        self.compression_strategy = compression_strategy

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """Return ``""``, ``"ZLIB"`` or ``"GZIP"``.

        Args:
            options: Such a string, a ``TFRecordCompressionType``, a ``TFRecordOptions`` or None.

        Raises:
            AttributeValueError: if it is none of these.
        """
        while isinstance(options, TFRecordOptions):
            options = options.compression_type
        if options is None:
            return ""
        if isinstance(options, str) and options in cls.compression_type_map.values():
            return options
        if isinstance(options, int) and options in cls.compression_type_map:
            return cls.compression_type_map[options]
        raise AttributeValueError(
            "expected a compression: '', 'ZLIB', 'GZIP', a TFRecordCompressionType or "
            f"TFRecordOptions, got {shown(options)}"
        )
