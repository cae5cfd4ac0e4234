"""Messages of Protocol Buffers, in the wire format of TensorFlow's.

The files in ``schemas`` say what they hold. Classes are made of them when a program first names
one, in a pool of their own: TensorFlow and TensorBoard, which have messages of the same names, can
be imported beside them.
"""

from __future__ import annotations

from typing import Any

AttrValue: Any
BytesList: Any
CheckpointState: Any
ClusterDef: Any
CollectionDef: Any
Event: Any
Example: Any
Feature: Any
FeatureList: Any
FeatureLists: Any
Features: Any
FloatList: Any
GraphDef: Any
HistogramProto: Any
Int64List: Any
JobDef: Any
LogMessage: Any
MetaGraphDef: Any
NameAttrList: Any
NodeDef: Any
OpDef: Any
QueueRunnerDef: Any
RunMetadata: Any
SaverDef: Any
SequenceExample: Any
ServerDef: Any
SessionLog: Any
SignatureDef: Any
Summary: Any
SummaryDescription: Any
SummaryMetadata: Any
TaggedRunMetadata: Any
TensorInfo: Any
TensorProto: Any
TensorShapeProto: Any
TrackableObjectGraph: Any
VariableDef: Any

# Records of data sets.
EXAMPLES = (
    "BytesList",
    "Example",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FloatList",
    "Int64List",
    "SequenceExample",
)
# Event files.
SUMMARIES = (
    "Event",
    "HistogramProto",
    "LogMessage",
    "SessionLog",
    "Summary",
    "SummaryDescription",
    "SummaryMetadata",
    "TaggedRunMetadata",
)
# Graphs, their values, and what was measured of a step.
GRAPHS = (
    "AttrValue",
    "CollectionDef",
    "GraphDef",
    "MetaGraphDef",
    "NameAttrList",
    "NodeDef",
    "OpDef",
    "QueueRunnerDef",
    "RunMetadata",
    "SignatureDef",
    "TensorInfo",
    "TensorProto",
    "TensorShapeProto",
    "VariableDef",
)

# Which checkpoints there are, and how a graph saves and restores them.
CHECKPOINTS = ("CheckpointState", "SaverDef", "TrackableObjectGraph")
# Clusters, and servers in them.
CLUSTERS = ("ClusterDef", "JobDef", "ServerDef")


def __getattr__(name: str) -> Any:
    if name not in (*EXAMPLES, *SUMMARIES, *GRAPHS, *CHECKPOINTS, *CLUSTERS):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # lazy: protobuf is for programs that make messages; parsing examples reads bytes without it
    from headrace_io.protos.pool import message_class

    value = globals()[name] = message_class(name)
    return value
