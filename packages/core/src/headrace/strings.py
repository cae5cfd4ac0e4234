"""Functions of strings, as ``hr.strings``."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from headrace.ops.report import string_format as format
from headrace.ops.text import reduce_join as reduce_join
from headrace.ops.text import regex_full_match as regex_full_match
from headrace.ops.text import regex_replace as regex_replace
from headrace.ops.text import string_join as join
from headrace.ops.text import string_length as length
from headrace.ops.text import string_lower as lower
from headrace.ops.text import string_strip as strip
from headrace.ops.text import string_upper as upper
from headrace.ops.text import strings_split as split
from headrace.ops.text import substr as substr
from headrace.ops.text import unicode_encode as unicode_encode
from headrace.ops.text import unicode_transcode as unicode_transcode
from headrace.ops.text import unsorted_segment_join as unsorted_segment_join
from headrace.ops.text_convert import as_string as as_string
from headrace.ops.text_convert import string_to_number as to_number
from headrace.ops.text_hash import string_to_hash_bucket as to_hash_bucket
from headrace.ops.text_hash import string_to_hash_bucket_fast as to_hash_bucket_fast
from headrace.ops.text_hash import string_to_hash_bucket_strong as to_hash_bucket_strong
from headrace.ops.text_pieces import unicode_script as unicode_script
from headrace.plugins.namespaces import added_names as _added_names
from headrace.ragged.text import bytes_split as bytes_split
from headrace.ragged.text import ngrams as ngrams
from headrace.ragged.text import unicode_decode as unicode_decode
from headrace.ragged.text import unicode_decode_with_offsets as unicode_decode_with_offsets
from headrace.ragged.text import unicode_split as unicode_split
from headrace.ragged.text import unicode_split_with_offsets as unicode_split_with_offsets

if not _TYPE_CHECKING:
    __getattr__, __dir__ = _added_names("strings", __name__)
