"""Lookup tables, as ``hr.lookup``."""

import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

from headrace.ops import experimental_tables as experimental
from headrace.ops.tables import HashTable as HashTable
from headrace.ops.tables import KeyValueTensorInitializer as KeyValueTensorInitializer
from headrace.ops.tables import MutableDenseHashTable as MutableDenseHashTable
from headrace.ops.tables import MutableHashTable as MutableHashTable
from headrace.ops.tables import StaticHashTable as StaticHashTable
from headrace.ops.tables import TextFileIndex as TextFileIndex
from headrace.ops.tables import TextFileInitializer as TextFileInitializer
from headrace.ops.vocabulary import FastHashSpec as FastHashSpec
from headrace.ops.vocabulary import StaticVocabularyTable as StaticVocabularyTable
from headrace.ops.vocabulary import StrongHashSpec as StrongHashSpec
from headrace.ops.vocabulary import index_table_from_file as index_table_from_file
from headrace.ops.vocabulary import index_table_from_tensor as index_table_from_tensor
from headrace.ops.vocabulary import (
    index_to_string_table_from_file as index_to_string_table_from_file,
)
from headrace.ops.vocabulary import (
    index_to_string_table_from_tensor as index_to_string_table_from_tensor,
)
from headrace.plugins.namespaces import added_names as _added_names

if not _TYPE_CHECKING:
    __getattr__, __dir__ = _added_names("lookup", __name__)

# For "import headrace.lookup.experimental", though this module is no folder.
_sys.modules[f"{__name__}.experimental"] = experimental
