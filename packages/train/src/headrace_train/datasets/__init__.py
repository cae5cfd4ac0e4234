"""Data sets to learn and to test with: one bundled, others read from files of the user."""

from __future__ import annotations

from headrace_train.datasets.dataset import Dataset as Dataset
from headrace_train.datasets.dataset import DataSplits as DataSplits
from headrace_train.datasets.digits import load_digits as load_digits
from headrace_train.datasets.idx import read_idx as read_idx
from headrace_train.datasets.idx import write_idx as write_idx
from headrace_train.datasets.mnist import load_mnist as load_mnist
from headrace_train.datasets.text import Text as Text
from headrace_train.datasets.text import load_text as load_text

__all__ = [
    "DataSplits",
    "Dataset",
    "Text",
    "load_digits",
    "load_mnist",
    "load_text",
    "read_idx",
    "write_idx",
]
