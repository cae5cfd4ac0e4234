"""Reserved names: those under ``headrace`` that core has, and those of Headrace's own packages."""

from __future__ import annotations

import functools
import importlib
import sys

from headrace.plugins.ownership import CORE, CORE_PACKAGE, Claim, Provider

# Which of our own packages brings a public name, to name it where it is not installed.
OFFICIAL = {
    **dict.fromkeys(
        (
            *("gradients", "hessians", "custom_gradient", "recompute_grad", "no_gradient"),
            *("gradient_override_map", "RegisterGradient", "NoGradient", "NotDifferentiable"),
            *("AggregationMethod", "UnconnectedGradients"),
        ),
        "headrace-autodiff",
    ),
    "data": "headrace-data",
    "serve": "headrace-serve",
    "tensorflow": "headrace-tensorflow",
    "testing": "headrace-testing",
    "train": "headrace-train",
    "layers": "headrace-train",
    "metrics": "headrace-train",
    "test": "headrace-train",
    "summary": "headrace-train",
    "dist": "headrace-dist-mpi",
    "io": "headrace-io",
    **dict.fromkeys(
        (
            *(
                "python_io",
                "resource_loader",
                "gfile",
                "io.gfile",
                "graph_util",
                "import_graph_def",
                "matching_files",
                "read_file",
                "write_file",
                "ReaderBase",
            ),
            *("TextLineReader", "WholeFileReader", "FixedLengthRecordReader", "TFRecordReader"),
            *("IdentityReader", "decode_compressed", "decode_json_example"),
            *("FixedLenFeature", "FixedLenSequenceFeature", "SparseFeature", "VarLenFeature"),
            *("parse_example", "parse_single_example", "parse_single_sequence_example"),
            *("AttrValue", "Event", "GraphDef", "HistogramProto", "LogMessage"),
            *("MetaGraphDef", "NameAttrList", "NodeDef", "SessionLog", "Summary"),
            *("SummaryMetadata", "TensorInfo", "make_ndarray", "make_tensor_proto"),
            *("image.decode_and_crop_jpeg", "image.decode_bmp", "image.decode_gif"),
            *("image.decode_image", "image.decode_jpeg", "image.decode_png", "image.encode_jpeg"),
            *("image.encode_png", "image.extract_jpeg_shape", "image.is_jpeg", "train.BytesList"),
            *("train.Example", "train.Feature", "train.FeatureList", "train.FeatureLists"),
            *("train.Features", "train.FloatList", "train.Int64List", "train.SequenceExample"),
            "train.match_filenames_once",
        ),
        "headrace-io",
    ),
}

# Which of our own packages brings a command of ``python -m headrace``.
OFFICIAL_COMMANDS = {
    "checkpoint": "headrace-train",
    "flight": "headrace-dist-mpi",
    "launch": "headrace-dist-mpi",
    "serve": "headrace-serve",
    "tensorflow": "headrace-tensorflow",
}

_FINAL = (
    "a name of core cannot be replaced, as programs may have it before any plugin is loaded; "
    "fix the plugin: add a name of its own"
)


@functools.cache
def core_names() -> frozenset[str]:
    """Return the names that core itself has: public ones, and modules."""
    # A twentieth of the time of ``import headrace``, which does not ask for names.
    from pathlib import Path

    # Importing it here would go in a circle; whoever imports this module has imported it.
    package = sys.modules[CORE_PACKAGE]
    modules = (path.stem for folder in package.__path__ for path in Path(folder).iterdir())
    # What plugins bring is there, too, once a program has used it.
    known = vars(package).keys() - OFFICIAL.keys()
    return frozenset({*package.__all__, *modules, *(n for n in known if not n.startswith("_"))})


def _in_namespace_of_core(name: str) -> bool:
    """Whether a namespace of core has a name such as ``"image.resize"`` itself."""
    namespace, _, last = name.rpartition(".")
    if namespace not in core_names():
        return False
    # Plugins that are not Headrace's own, and add to a namespace, are few.
    module = importlib.import_module(f"{CORE_PACKAGE}.{namespace}")
    return last in vars(module)


def reserved(name: str) -> Claim | None:
    """Return the claim of who has a name although no plugin offers it, None where nobody has."""
    if name in core_names() or _in_namespace_of_core(name):
        return Claim(CORE, f"{CORE_PACKAGE}.{name}", final=_FINAL)
    package = OFFICIAL.get(name)
    if package is None:
        return None
    return Claim(Provider("", CORE_PACKAGE, package), package)
