"""Programs of signals, sets and others as one table, for TensorFlow 1.15 and for Headrace.

Each is an expression of ``tf``, the library, ``np`` and the functions here; a list of tensors, or
one, is its result.
"""

import numpy as np


def wave(*shape):
    """Return numbers that look random."""
    count = int(np.prod(shape))
    return (np.sin(np.arange(count) * 1.7 + 0.3) * 3).astype(np.float32).reshape(shape)


def turned(*shape):
    """Return complex numbers that look random."""
    return (wave(*shape) + 1j * wave(*shape)[..., ::-1]).astype(np.complex64)


def slope(tf, function, *values):
    """Return gradients of a weighted sum of results, with respect to values."""
    tensors = [tf.constant(value) for value in values]
    result = function(*tensors)
    real = tf.real(result) + 2.0 * tf.imag(result) if result.dtype.is_complex else result
    weights = tf.cast(tf.range(1, tf.size(real) + 1), real.dtype)
    return tf.gradients(tf.reduce_sum(tf.reshape(real, [-1]) * weights), tensors)


def parts(sparse):
    """Return what a sparse tensor is made of."""
    return [sparse.indices, sparse.values, sparse.dense_shape]


def sparse(tf, rows):
    """Return a sparse matrix of rows of different lengths."""
    indices = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
    values = [value for row in rows for value in row]
    width = max(map(len, rows))
    return tf.SparseTensor(np.array(indices, np.int64).reshape(-1, 2), values, [len(rows), width])


SHORT, LONG = [[3, 1, 3], [5, 5, 5], [2, 7, 0]], [[1, 9], [5, 5], [4, 4]]

PROGRAMS = [
    "tf.fft(turned(2, 5))",
    "tf.fft([1.0, 2.0])",
    "tf.signal.rfft(np.ones(3))",
    "tf.ifft(turned(2, 5))",
    "tf.fft2d(turned(2, 3, 4))",
    "tf.ifft3d(turned(2, 3, 4))",
    "tf.spectral.fft3d(turned(2, 3, 4))",
    "tf.signal.rfft(wave(2, 6))",
    "tf.signal.rfft(wave(2, 6), [4])",
    "tf.signal.rfft(wave(2, 6), [9])",
    "tf.signal.rfft2d(wave(3, 5), [4, 4])",
    "tf.spectral.rfft3d(wave(2, 3, 5))",
    "tf.signal.irfft(turned(2, 4))",
    "tf.signal.irfft(turned(2, 4), [5])",
    "tf.signal.irfft(turned(2, 4), [9])",
    "tf.signal.irfft2d(turned(3, 4), [2, 6])",
    "tf.signal.irfft3d(turned(2, 3, 4))",
    "tf.signal.rfft(np.zeros((0, 4), np.float32))",
    "slope(tf, tf.fft, turned(2, 5))",
    "slope(tf, tf.ifft2d, turned(3, 4))",
    "slope(tf, tf.signal.rfft, wave(2, 6))",
    "slope(tf, tf.signal.rfft, wave(2, 5))",
    "slope(tf, tf.signal.irfft, turned(2, 4))",
    "slope(tf, lambda x: tf.signal.irfft(x, [5]), turned(2, 3))",
    "slope(tf, tf.signal.rfft2d, wave(3, 4))",
    "slope(tf, tf.signal.irfft2d, turned(3, 4))",
    "tf.signal.fftshift(wave(3, 4))",
    "tf.signal.ifftshift(wave(3, 5), [1])",
    "tf.signal.fftshift(wave(5), 0)",
    "tf.signal.dct(wave(2, 5))",
    "tf.signal.dct(wave(2, 5), norm='ortho')",
    "tf.signal.dct(wave(2, 5), type=1)",
    "tf.signal.dct(wave(2, 5), type=3)",
    "tf.spectral.dct(wave(2, 5), type=3, norm='ortho')",
    "tf.signal.dct(wave(2, 5), n=3)",
    "tf.signal.dct(wave(2, 5), n=8, norm='ortho')",
    "tf.signal.idct(wave(2, 5))",
    "tf.signal.idct(wave(2, 5), type=1)",
    "tf.spectral.idct(wave(2, 5), type=3, norm='ortho')",
    "slope(tf, tf.signal.dct, wave(2, 4))",
    "tf.signal.frame(wave(2, 9), 4, 3)",
    "tf.signal.frame(wave(2, 9), 4, 3, pad_end=True, pad_value=7)",
    "tf.signal.frame(wave(9, 2), 2, 3, axis=0)",
    "tf.signal.frame(wave(2, 3), 5, 2)",
    "tf.signal.frame(wave(9), 3, 5, True)",
    "slope(tf, lambda x: tf.signal.frame(x, 4, 2), wave(9))",
    "tf.signal.overlap_and_add(wave(2, 4, 5), 3)",
    "tf.signal.overlap_and_add(wave(3, 4), 4)",
    "tf.signal.overlap_and_add(wave(3, 4), 6)",
    "slope(tf, lambda x: tf.signal.overlap_and_add(x, 2), wave(3, 4))",
    "tf.signal.hann_window(6)",
    "tf.signal.hann_window(6, periodic=False)",
    "tf.signal.hann_window(1)",
    "tf.signal.hamming_window(7, dtype=tf.float64)",
    "tf.signal.hamming_window(tf.placeholder_with_default(4, []), False)",
    "tf.signal.stft(wave(2, 20), 6, 4)",
    "tf.signal.stft(wave(20), 6, 4, fft_length=6, window_fn=None, pad_end=True)",
    "tf.signal.inverse_stft(turned(2, 3, 5), 6, 4)",
    "tf.signal.inverse_stft(turned(3, 5), 10, 4, 8, tf.signal.hamming_window)",
    "tf.signal.inverse_stft_window_fn(3)(8, dtype=tf.float32)",
    "slope(tf, lambda x: tf.signal.stft(x, 6, 4), wave(12))",
    "tf.signal.linear_to_mel_weight_matrix(5, 9, 8000)",
    "tf.signal.linear_to_mel_weight_matrix(4, 7, 16000, 20.0, 7000.0, tf.float64)",
    "tf.signal.mfccs_from_log_mel_spectrograms(wave(2, 3, 6))",
    "parts(tf.sets.intersection(SHORT, LONG))",
    "parts(tf.sets.difference(np.array(SHORT, np.uint8), np.array(LONG, np.uint8)))",
    "parts(tf.sets.set_difference(SHORT, LONG, aminusb=False))",
    "parts(tf.sets.union([[b'b', b'a']], [[b'c', b'a']]))",
    "parts(tf.sets.set_union(SHORT, sparse(tf, [[9], [], [1, 2, 3]])))",
    "parts(tf.sets.difference(sparse(tf, [[1], [], [2, 1, 3]]), SHORT))",
    "parts(tf.sets.difference(sparse(tf, [[1], [], [2, 1]]), sparse(tf, [[], [4], [1, 3]])))",
    "parts(tf.sets.set_intersection(np.zeros((2, 3, 0), np.int8), np.ones((2, 3, 1), np.int8)))",
    "tf.sets.size(sparse(tf, [[1, 1, 2], [], [3]]))",
    "tf.sets.set_size(sparse(tf, [[b'a'], [b'b', b'b']]))",
    "tf.image.draw_bounding_boxes(wave(1, 6, 8, 3), [[[0.1, 0.1, 0.8, 0.7], [-0.5, 0.3, 0.4, 2]]])",
    "tf.image.draw_bounding_boxes(wave(1, 5, 5, 4), [[[i / 12.0, 0, 1, 1] for i in range(11)]])",
    "tf.image.draw_bounding_boxes(wave(1, 4, 4, 1), [[[0, 0, 0.5, 0.5], [2, 2, 3, 3.0]]])",
    "tf.image.draw_bounding_boxes(wave(1, 4, 4, 3), [[[0, 0, 1, 0.5]]], colors=[[0.1, 0.2, 0.3]])",
    "tf.strings.unsorted_segment_join(['a', 'b', 'c', 'd'], [2, 0, 0, 2], 4, '-')",
    "tf.strings.unsorted_segment_join([['a', 'b'], ['c', 'd']], [[1, 0], [0, 1]], 2)",
    "tf.math.reciprocal_no_nan([2.0, 0.0])",
    "tf.math.reciprocal_no_nan(np.array([2j, 0], np.complex128))",
    "slope(tf, tf.math.reciprocal_no_nan, wave(3))",
]

# What both refuse, and with which of Python's exceptions or of the families of errors.
REFUSED = [
    "tf.fft(tf.constant(wave(3)))",
    "tf.fft(np.complex64(1))",
    "tf.fft2d(turned(3))",
    "tf.signal.rfft(tf.zeros([3], tf.float64))",
    "tf.signal.rfft(wave(3), [1, 2])",
    "tf.signal.dct(wave(2, 5), axis=0)",
    "tf.signal.dct(wave(2, 5), type=4)",
    "tf.signal.dct(wave(2, 5), type=1, norm='ortho')",
    "tf.signal.dct(wave(2, 5), n=0)",
    "tf.signal.dct(wave(2, 5), norm='l2')",
    "tf.signal.dct(wave(2, 1), type=1)",
    "tf.signal.frame(1.0, 2, 1)",
    "tf.signal.frame(wave(5), [2], 1)",
    "tf.signal.overlap_and_add(wave(5), 2)",
    "tf.signal.overlap_and_add(wave(2, 5), 2.0)",
    "tf.signal.hann_window(5, dtype=tf.int32)",
    "tf.signal.hann_window([5])",
    "tf.signal.linear_to_mel_weight_matrix(0)",
    "tf.signal.linear_to_mel_weight_matrix(sample_rate=0)",
    "tf.signal.linear_to_mel_weight_matrix(lower_edge_hertz=-1)",
    "tf.signal.linear_to_mel_weight_matrix(lower_edge_hertz=5000)",
    "tf.signal.linear_to_mel_weight_matrix(upper_edge_hertz=5000)",
    "tf.signal.linear_to_mel_weight_matrix(dtype=tf.int32)",
    "tf.signal.mfccs_from_log_mel_spectrograms(np.zeros((2, 0)))",
    "tf.sets.size([[1]])",
    "tf.sets.union([[1.0]], [[1.0]])",
    "tf.sets.union(np.array([[1]], np.int32), np.array([[1]], np.int64))",
    "tf.sets.union([1], [1])",
    "tf.sets.union([[1], [2]], [[1]])",
    "tf.image.draw_bounding_boxes(wave(1, 4, 4, 2), [[[0, 0, 1, 1.0]]])",
    "tf.image.draw_bounding_boxes(wave(4, 4, 3), [[[0, 0, 1, 1.0]]])",
    "tf.image.draw_bounding_boxes(wave(1, 4, 4, 3), [[[0, 0, 1, 1.0]]], colors=[[1.0, 2.0]])",
    "tf.strings.unsorted_segment_join(['a', 'b'], [0, 5], 2)",
    "tf.strings.unsorted_segment_join(['a', 'b'], [0, -1], 2)",
    "tf.strings.unsorted_segment_join(['a', 'b'], [0], 2)",
    "tf.strings.unsorted_segment_join(['a', 'b'], [0, 0], -2)",
    "tf.math.reciprocal_no_nan([1, 2])",
]
