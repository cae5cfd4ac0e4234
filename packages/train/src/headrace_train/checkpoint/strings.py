"""Reading strings out of HDF5, believing nothing that the file says.

Strings are of variable length and lie in heaps among the structures of HDF5. Its library finds the
dataset, and can do far more than our writer ever makes it do: links into other files, filters, data
outside of the file. Whatever our writer does not make is refused. The heaps are read here: in
forged ones the library reads for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headrace_train.checkpoint.heaps import REFERENCE, Heaps, Stream, piece

if TYPE_CHECKING:
    from headrace_train.checkpoint.header import TensorEntry


def read_strings(
    open_file: Callable[[], Any], stream: Stream, path: str, entry: TensorEntry, file_bytes: int
) -> NDArray[Any]:
    """Return the elements of a dataset of strings, as arrays of bytes.

    Args:
        open_file: Opens the HDF5 file.
        stream: The file.
        path: Where the dataset lies.
        entry: What the header says of it.
        file_bytes: The size of the file.

    Raises:
        ValueError: if it is none that our writer made.
    """
    elements: NDArray[Any] = np.empty(entry.shape, object)
    if not elements.size:
        return elements
    dataset = _dataset(open_file(), path, entry)
    offset = dataset.id.get_offset()
    if offset is None:
        raise ValueError("it has no data")
    base = dataset.file.userblock_size
    told = piece(stream, offset, elements.size * REFERENCE.itemsize, file_bytes)
    references = np.frombuffer(told, REFERENCE)
    total = int(references["length"].sum(dtype=np.uint64))
    if total > entry.nbytes:
        raise ValueError(f"it holds more than the {entry.nbytes} bytes that its header states")
    heaps = Heaps(stream, base, file_bytes)
    for index, reference in zip(np.ndindex(entry.shape), references, strict=True):
        elements[index] = heaps.element(*map(int, reference.item()))
    return elements


def _dataset(file: Any, path: str, entry: TensorEntry) -> Any:
    import h5py

    place = file.id
    for part in path.encode().split(b"/"):
        if place.links.get_info(part).type != h5py.h5l.TYPE_HARD:
            raise ValueError("it is a link to somewhere else")
        place = h5py.h5o.open(place, part)
    if not isinstance(place, h5py.h5d.DatasetID):
        raise TypeError("it is no dataset")
    made = place.get_create_plist()
    if made.get_layout() != h5py.h5d.CONTIGUOUS or made.get_nfilters():
        raise ValueError("it is laid out as no checkpoint is")
    if made.get_external_count():
        raise ValueError("its data is outside of the file")
    if file.id.get_create_plist().get_sizes() != (8, 8):
        raise ValueError("its addresses are not of 64 bits, as those of checkpoints are")
    dataset = h5py.Dataset(place)
    if dataset.shape != entry.shape:
        raise ValueError(f"its shape is {dataset.shape}, expected {entry.shape}")
    if h5py.check_vlen_dtype(dataset.dtype) != np.dtype(np.uint8):
        raise ValueError(f"its elements are {dataset.dtype}, expected strings")
    return dataset
