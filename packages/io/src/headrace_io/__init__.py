"""Files in graphs: readers, records, examples, parsing, images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.extend.plugins import added_names

if TYPE_CHECKING:
    from headrace_io.dtype_protos import shape_proto as shape_proto
    from headrace_io.filenames import match_filenames_once as match_filenames_once
    from headrace_io.graph_export.attributes import attribute_of as attribute_of
    from headrace_io.graph_import.importing import import_graph_def as import_graph_def
    from headrace_io.graph_import.importing import read_graph_def as read_graph_def
    from headrace_io.graph_protos import graph_def_of as graph_def_of
    from headrace_io.graph_protos import node_def_of as node_def_of
    from headrace_io.images.functions import adjust_jpeg_quality as adjust_jpeg_quality
    from headrace_io.images.functions import decode_image as decode_image
    from headrace_io.images.functions import is_jpeg as is_jpeg
    from headrace_io.images.functions import random_jpeg_quality as random_jpeg_quality
    from headrace_io.meta_graph import import_meta_graph_def as import_meta_graph_def
    from headrace_io.meta_graph import meta_graph_def_of as meta_graph_def_of
    from headrace_io.meta_graph import variable_def_of as variable_def_of
    from headrace_io.meta_graph import variable_of as variable_of
    from headrace_io.op_protos import op_def_of as op_def_of
    from headrace_io.ops.decoding import decode_compressed as decode_compressed
    from headrace_io.ops.decoding import decode_json_example as decode_json_example
    from headrace_io.ops.files import matching_files as matching_files
    from headrace_io.ops.files import read_file as read_file
    from headrace_io.ops.files import write_file as write_file
    from headrace_io.ops.images import decode_and_crop_jpeg as decode_and_crop_jpeg
    from headrace_io.ops.images import decode_bmp as decode_bmp
    from headrace_io.ops.images import decode_gif as decode_gif
    from headrace_io.ops.images import decode_jpeg as decode_jpeg
    from headrace_io.ops.images import decode_png as decode_png
    from headrace_io.ops.images import encode_jpeg as encode_jpeg
    from headrace_io.ops.images import encode_png as encode_png
    from headrace_io.ops.images import extract_jpeg_shape as extract_jpeg_shape
    from headrace_io.ops.messages import decode_proto as decode_proto
    from headrace_io.ops.messages import encode_proto as encode_proto
    from headrace_io.parsing.examples import parse_example as parse_example
    from headrace_io.parsing.examples import parse_sequence_example as parse_sequence_example
    from headrace_io.parsing.examples import parse_single_example as parse_single_example
    from headrace_io.parsing.examples import (
        parse_single_sequence_example as parse_single_sequence_example,
    )
    from headrace_io.parsing.features import FixedLenFeature as FixedLenFeature
    from headrace_io.parsing.features import FixedLenSequenceFeature as FixedLenSequenceFeature
    from headrace_io.parsing.features import SparseFeature as SparseFeature
    from headrace_io.parsing.features import VarLenFeature as VarLenFeature
    from headrace_io.protos import BytesList as BytesList
    from headrace_io.protos import Example as Example
    from headrace_io.protos import Feature as Feature
    from headrace_io.protos import FeatureList as FeatureList
    from headrace_io.protos import FeatureLists as FeatureLists
    from headrace_io.protos import Features as Features
    from headrace_io.protos import FloatList as FloatList
    from headrace_io.protos import Int64List as Int64List
    from headrace_io.protos import SequenceExample as SequenceExample
    from headrace_io.readers.faces import FixedLengthRecordReader as FixedLengthRecordReader
    from headrace_io.readers.faces import IdentityReader as IdentityReader
    from headrace_io.readers.faces import ReaderBase as ReaderBase
    from headrace_io.readers.faces import TextLineReader as TextLineReader
    from headrace_io.readers.faces import TFRecordReader as TFRecordReader
    from headrace_io.readers.faces import WholeFileReader as WholeFileReader
    from headrace_io.records import TFRecordCompressionType as TFRecordCompressionType
    from headrace_io.records import TFRecordOptions as TFRecordOptions
    from headrace_io.records import TFRecordWriter as TFRecordWriter
    from headrace_io.records import read_records as read_records
    from headrace_io.records import tf_record_iterator as tf_record_iterator
    from headrace_io.saved_models import read_saved_model as read_saved_model

__all__ = [
    "BytesList",
    "Example",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "FixedLengthRecordReader",
    "FloatList",
    "IdentityReader",
    "Int64List",
    "ReaderBase",
    "SequenceExample",
    "SparseFeature",
    "TFRecordCompressionType",
    "TFRecordOptions",
    "TFRecordReader",
    "TFRecordWriter",
    "TextLineReader",
    "VarLenFeature",
    "WholeFileReader",
    "adjust_jpeg_quality",
    "attribute_of",
    "decode_and_crop_jpeg",
    "decode_bmp",
    "decode_compressed",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_json_example",
    "decode_png",
    "decode_proto",
    "encode_jpeg",
    "encode_png",
    "encode_proto",
    "extract_jpeg_shape",
    "graph_def_of",
    "import_graph_def",
    "import_meta_graph_def",
    "is_jpeg",
    "match_filenames_once",
    "matching_files",
    "meta_graph_def_of",
    "node_def_of",
    "op_def_of",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "random_jpeg_quality",
    "read_file",
    "read_graph_def",
    "read_records",
    "read_saved_model",
    "shape_proto",
    "tf_record_iterator",
    "variable_def_of",
    "variable_of",
    "write_file",
]

_added, _names = added_names("io", __name__)


def _find(name: str) -> Any:
    """Return a name of the package, imported when a program first uses it, or one that is added."""
    from importlib import import_module

    # lazy: programs use few of them, and every process that looks for plugins loads this package
    from headrace_io.names import FOUND_IN

    module = FOUND_IN.get(name)
    if module is None:
        return _added(name)

    value = getattr(import_module(f"headrace_io.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_names()})


if not TYPE_CHECKING:
    __getattr__ = _find
