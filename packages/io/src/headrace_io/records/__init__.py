"""Files of records: data of any length, each with checksums, in TensorFlow's format."""

from headrace_io.records.options import TFRecordCompressionType as TFRecordCompressionType
from headrace_io.records.options import TFRecordOptions as TFRecordOptions
from headrace_io.records.reading import read_records as read_records
from headrace_io.records.reading import tf_record_iterator as tf_record_iterator
from headrace_io.records.writing import TFRecordWriter as TFRecordWriter
