"""Reading and writing files of records, under the name that TensorFlow 1 has for it."""

from headrace_io.records import TFRecordCompressionType as TFRecordCompressionType
from headrace_io.records import TFRecordOptions as TFRecordOptions
from headrace_io.records import TFRecordWriter as TFRecordWriter
from headrace_io.records import tf_record_iterator as tf_record_iterator

__all__ = [
    "TFRecordCompressionType",
    "TFRecordOptions",
    "TFRecordWriter",
    "tf_record_iterator",
]
