"""Public names: in which module each stands, and where else than in ``hr.io`` it is found."""

from __future__ import annotations

# Module -> its public names. Modules are imported when a program first names one of them.
MODULES: dict[str, tuple[str, ...]] = {
    "dtype_protos": ("shape_proto",),
    "filenames": ("match_filenames_once",),
    "images.functions": (
        *("adjust_jpeg_quality", "decode_image", "is_jpeg", "random_jpeg_quality"),
    ),
    "ops.decoding": ("decode_compressed", "decode_json_example"),
    "graph_export.attributes": ("attribute_of",),
    "graph_protos": ("graph_def_of", "node_def_of"),
    "op_protos": ("op_def_of",),
    "graph_import.importing": ("import_graph_def", "read_graph_def"),
    "saved_models": ("read_saved_model",),
    "meta_graph": (
        *("import_meta_graph_def", "meta_graph_def_of", "variable_def_of", "variable_of"),
    ),
    "ops.messages": ("decode_proto", "encode_proto"),
    "ops.files": ("matching_files", "read_file", "write_file"),
    "ops.images": (
        *("decode_and_crop_jpeg", "decode_bmp", "decode_gif", "decode_jpeg", "decode_png"),
        *("encode_jpeg", "encode_png", "extract_jpeg_shape"),
    ),
    "parsing.examples": (
        *("parse_example", "parse_sequence_example", "parse_single_example"),
        "parse_single_sequence_example",
    ),
    "parsing.features": (
        *("FixedLenFeature", "FixedLenSequenceFeature", "SparseFeature", "VarLenFeature"),
    ),
    "protos": (
        *("BytesList", "Example", "Feature", "FeatureList", "FeatureLists", "Features"),
        *("FloatList", "Int64List", "SequenceExample"),
    ),
    "readers.faces": (
        *("FixedLengthRecordReader", "IdentityReader", "ReaderBase", "TFRecordReader"),
        *("TextLineReader", "WholeFileReader"),
    ),
    "records": (
        *("TFRecordCompressionType", "TFRecordOptions", "TFRecordWriter", "read_records"),
        "tf_record_iterator",
    ),
}
FOUND_IN = {name: module for module, names in MODULES.items() for name in names}

# Namespace -> which of these names it has, too; "" for ``headrace`` itself.
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "": (
        *MODULES["ops.decoding"],
        *MODULES["ops.files"],
        "import_graph_def",
        *MODULES["parsing.features"],
        *MODULES["readers.faces"],
        *("parse_example", "parse_single_example", "parse_single_sequence_example"),
    ),
    "image": (*MODULES["images.functions"], *MODULES["ops.images"]),
    "train": ("match_filenames_once", *MODULES["protos"]),
}

# Messages, and what makes and reads them, that programs find under ``headrace`` itself.
MESSAGES: dict[str, tuple[str, ...]] = {
    "protos": (
        *("AttrValue", "Event", "GraphDef", "HistogramProto", "LogMessage", "MetaGraphDef"),
        *("NameAttrList", "NodeDef", "SessionLog", "Summary", "SummaryMetadata"),
        "TensorInfo",
    ),
    "tensor_protos": ("make_ndarray", "make_tensor_proto"),
}

# Names of ``hr.io`` that core has.
OF_CORE: dict[str, str] = {
    "decode_base64": "headrace:decode_base64",
    "decode_csv": "headrace:decode_csv",
    "decode_raw": "headrace:decode_raw",
    "deserialize_many_sparse": "headrace:deserialize_many_sparse",
    "encode_base64": "headrace:encode_base64",
    "parse_tensor": "headrace:parse_tensor",
    "serialize_many_sparse": "headrace:serialize_many_sparse",
    "serialize_sparse": "headrace:serialize_sparse",
    "serialize_tensor": "headrace:serialize_tensor",
}


def targets() -> dict[str, str]:
    """Return all names under ``headrace`` that the package adds, and what they stand for."""
    found = {
        "gfile": "headrace_io.files.gfile",
        "io.gfile": "headrace_io.files.io_gfile",
        "graph_util": "headrace_io.graph_util",
        "io": "headrace_io",
        "python_io": "headrace_io.python_io",
        "raw_ops": "headrace_io.raw_ops",
        "resource_loader": "headrace_io.resource_loader",
    }
    for namespace, names in ELSEWHERE.items():
        for name in names:
            public = f"{namespace}.{name}" if namespace else name
            found[public] = f"headrace_io.{FOUND_IN[name]}:{name}"
    for module, names in MESSAGES.items():
        found.update({name: f"headrace_io.{module}:{name}" for name in names})
    found.update({f"io.{name}": target for name, target in OF_CORE.items()})
    return found
