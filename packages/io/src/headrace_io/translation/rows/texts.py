"""Translations of ops of strings, of files, and of records."""

from __future__ import annotations

from typing import Any

from headrace.errors import AttributeValueError, DocumentError
from headrace.extend.ops import call_op
from headrace.extend.translations import TranslationTable
from headrace_io.translation.library import hr
from headrace_io.translation.rows.elementwise import same
from headrace_io.translation.rows.sparse import parts

ROWS = TranslationTable()

ROWS.call("AsString", hr.as_string, "precision scientific shortest width fill")
ROWS.call("DecodeBase64", hr.decode_base64)
ROWS.call("EncodeBase64", hr.encode_base64, "pad")
ROWS.call("RegexFullMatch", hr.strings.regex_full_match)
ROWS.call("RegexReplace", hr.strings.regex_replace, "replace_global")
ROWS.call("StringJoin", hr.strings.join, "separator", listed=True)
ROWS.call("StringLength", hr.strings.length, "unit")
ROWS.call("StringLower", hr.strings.lower, "encoding")
ROWS.call("StringUpper", hr.strings.upper, "encoding")
ROWS.call("StringStrip", hr.strings.strip)
ROWS.call("StringToHashBucket", hr.strings.to_hash_bucket, "num_buckets")
ROWS.call("StringToHashBucketFast", hr.strings.to_hash_bucket_fast, "num_buckets")
ROWS.call("StringToHashBucketStrong", hr.strings.to_hash_bucket_strong, "num_buckets key")
ROWS.call("StringToNumber", hr.string_to_number, "out_type")
ROWS.call("Substr", hr.strings.substr, "unit")
ROWS.call("UnsortedSegmentJoin", hr.strings.unsorted_segment_join, "separator")
ROWS.call(
    "UnicodeTranscode",
    hr.strings.unicode_transcode,
    "input_encoding output_encoding errors replacement_char replace_control_characters",
)
ROWS.call("ReadFile", hr.read_file)
ROWS.call("WriteFile", hr.write_file)
ROWS.call("MatchingFiles", hr.matching_files)
ROWS.call("ParseTensor", hr.parse_tensor, "out_type")
ROWS.call("SerializeTensor", hr.serialize_tensor)
ROWS.call("DecodeRaw", hr.decode_raw, "out_type little_endian")
ROWS.call("DecodeCompressed", hr.decode_compressed, "compression_type")
ROWS.call("DecodeJSONExample", hr.decode_json_example)
ROWS.call("ShardedFilename", same("ShardedFilename"))


@ROWS.add("DecodePaddedRaw")
def _padded_raw(node: Any) -> Any:
    strings, kind = node.tensor(0), node.attr("out_type")
    length = int(node.known(1, "fixed_length"))
    if length <= 0 or length % kind.itemsize:
        raise AttributeValueError(
            f"fixed_length must be a positive multiple of {kind.itemsize}, the bytes of {kind}, "
            f"got {length}"
        )
    filled = hr.strings.substr(hr.strings.join([strings, b"\0" * length]), 0, length)
    numbers = hr.decode_raw(filled, kind, bool(node.attr("little_endian", True)))
    return hr.ensure_shape(numbers, strings.shape.concatenate([length // kind.itemsize]))


@ROWS.add("StaticRegexFullMatch")
def _full_match(node: Any) -> Any:
    return hr.strings.regex_full_match(node.tensor(0), node.text("pattern"))


@ROWS.add("StaticRegexReplace")
def _replace(node: Any) -> Any:
    return hr.strings.regex_replace(
        node.tensor(0),
        node.text("pattern"),
        node.text("rewrite"),
        replace_global=bool(node.attr("replace_global", True)),
    )


@ROWS.add("StringFormat")
def _format(node: Any) -> Any:
    return hr.strings.format(
        node.text("template", "%s"),
        node.tensors,
        placeholder=node.text("placeholder", "%s"),
        summarize=node.attr("summarize", 3),
    )


@ROWS.add("ReduceJoin")
def _reduce_join(node: Any) -> Any:
    return hr.reduce_join(
        node.tensor(0),
        axis=node.known(1, "reduction_indices"),
        keep_dims=bool(node.attr("keep_dims", False)),
        separator=node.text("separator"),
    )


@ROWS.add("StringSplit", outputs="indices values shape")
def _split(node: Any) -> Any:
    skip = bool(node.attr("skip_empty", True))
    return list(call_op("StringSplit", *node.tensors, skip_empty=skip))


@ROWS.add("StringSplitV2", outputs="indices values shape")
def _split_v2(node: Any) -> Any:
    return list(call_op("StringSplitV2", *node.tensors, maxsplit=node.attr("maxsplit", -1)))


@ROWS.add("UnicodeDecode", outputs="row_splits char_values")
def _unicode(node: Any) -> Any:
    return _decoded(node)[:2]


@ROWS.add("UnicodeDecodeWithOffsets", outputs="row_splits char_values char_to_byte_starts")
def _unicode_with_offsets(node: Any) -> Any:
    return _decoded(node)


def _decoded(node: Any) -> list[Any]:
    """Return where the characters of each string end, their code points, and the bytes of them."""
    codes, starts = hr.strings.unicode_decode_with_offsets(
        hr.reshape(node.tensor(0), [-1]),
        node.text("input_encoding"),
        node.text("errors", "replace"),
        node.attr("replacement_char", 65533),
        bool(node.attr("replace_control_characters", False)),
    )
    splits = hr.cast(codes.row_splits, node.attr("Tsplits", hr.int64))
    return [splits, codes.values, starts.values]


@ROWS.add("DecodeCSV")
def _csv(node: Any) -> Any:
    records, *defaults = node.tensors
    chosen = list(node.attr("select_cols", ()))
    return hr.io.decode_csv(
        records,
        defaults,
        field_delim=node.text("field_delim", ","),
        use_quote_delim=bool(node.attr("use_quote_delim", True)),
        na_value=node.text("na_value"),
        select_cols=chosen or None,
    )


@ROWS.add("ParseExample", outputs="sparse_indices sparse_values sparse_shapes dense_values")
def _parse_example(node: Any) -> Any:
    sparse, dense = node.attr("Nsparse", 0), node.attr("Ndense", 0)
    if len(node.inputs) != 2 + sparse + 2 * dense:
        raise DocumentError(f"it has {len(node.inputs)} inputs, expected {2 + sparse + 2 * dense}")
    keys = [_text(node.known(i, "keys")) for i in range(2, 2 + sparse + dense)]
    types = tuple(node.attr("sparse_types", ()))
    shapes = tuple(node.attr("dense_shapes", ()))
    defaults = node.tensors[2 + sparse + dense :]
    features: dict[str, Any] = {}
    for key, kind in zip(keys[:sparse], types, strict=True):
        features[key] = hr.io.VarLenFeature(kind)
    for key, shape, default, kind in zip(
        keys[sparse:], shapes, defaults, node.attr("Tdense", ()), strict=True
    ):
        features[key] = _dense_feature(shape, kind, default)
    names = node.tensor(1)
    empty = names.shape.num_elements() == 0
    found = hr.io.parse_example(node.tensor(0), features, example_names=None if empty else names)
    listed = [parts(found[key]) for key in keys[:sparse]]
    return [item[i] for i in range(3) for item in listed] + [found[key] for key in keys[sparse:]]


def _dense_feature(shape: Any, kind: Any, default: Any) -> Any:
    if shape.rank and shape[0] is None:
        # An empty default says that shorter rows are filled with zeros.
        fill = default if default.shape.num_elements() else None
        return hr.io.FixedLenSequenceFeature(list(shape[1:]), kind, True, fill)
    missing = default.shape.num_elements() == 0 and 0 not in tuple(shape)
    return hr.io.FixedLenFeature(list(shape), kind, None if missing else default)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
