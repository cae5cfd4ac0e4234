"""Summaries as TensorFlow 1.15 makes them; run in an environment that has it.

python generate_summaries.py > summaries.json
"""

import json
import sys

import numpy as np
import tensorflow.compat.v1 as tf

RNG = np.random.RandomState(11)


def array(values, dtype="float32"):
    """Return values as JSON: dtype, shape and a flat list."""
    values = np.asarray(values, dtype)
    flat = values.ravel().tolist()
    if dtype in ("float16", "float32", "float64"):
        flat = [repr(x) for x in flat]
    return {"dtype": dtype, "shape": list(values.shape), "values": flat}


def rebuilt(given):
    """Return the array that ``array`` wrote."""
    if given["dtype"] == "object":
        return np.array(given["values"], object).reshape(given["shape"])
    values = [float(x) if isinstance(x, str) else x for x in given["values"]]
    return np.array(values, given["dtype"]).reshape(given["shape"])


NAN, INF = float("nan"), float("inf")
CASES = [
    ("scalar", "float", array(1.5), {}),
    ("scalar", "nan", array(NAN), {}),
    ("scalar", "int", array(3, "int64"), {}),
    ("scalar", "large", array(1e300, "float64"), {}),
    ("scalar", "half", array(0.1, "float16"), {}),
    ("scalar", "a b/c", array(2), {"family": "fam ily"}),
    ("histogram", "normal", array(RNG.randn(1000)), {}),
    (
        "histogram",
        "wide",
        array(np.exp(20 * RNG.randn(200)) * RNG.choice([-1, 1], 200), "float64"),
        {},
    ),
    ("histogram", "beyond", array([1e25, -1e30, 1e-20, -1e-13], "float64"), {}),
    ("histogram", "limits", array([0, 1e-12, -1e-12, 1.1e-12, 1e20, 1.0, -1.0], "float64"), {}),
    ("histogram", "zeros", array(np.zeros(5)), {}),
    ("histogram", "empty", array([]), {}),
    ("histogram", "bytes", array([[0, 1], [2, 255]], "uint8"), {}),
    ("histogram", "ints", array([-3, -3, 7, 0], "int64"), {"family": "f"}),
    ("image", "grey", array(np.arange(24).reshape(2, 3, 4, 1) * 10, "uint8"), {}),
    ("image", "rgb", array(RNG.randint(0, 256, (1, 4, 5, 3)), "uint8"), {"max_outputs": 1}),
    ("image", "positive", array(RNG.rand(4, 3, 3, 3) * 7), {"max_outputs": 2}),
    ("image", "signed", array(RNG.randn(2, 4, 3, 1)), {}),
    ("image", "rgba", array(RNG.randn(1, 4, 3, 4) * 100, "float64"), {}),
    ("image", "halves", array(RNG.randn(1, 4, 3, 3), "float16"), {}),
    ("image", "tiny", array(np.full((1, 2, 2, 1), 1e-9)), {}),
    ("image", "bad", array([[[[1, 2, 3], [NAN, 0, 1]], [[INF, 1, 1], [4, 5, 6]]]]), {}),
    ("image", "all_bad", array(np.full((1, 2, 1, 1), NAN)), {}),
    ("image", "none", array(np.zeros((0, 2, 2, 1)), "uint8"), {}),
    ("audio", "mono", array(np.sin(np.arange(40) / 3).reshape(2, 20)), {"sample_rate": 44100.0}),
    (
        "audio",
        "stereo",
        array([[[0, 1], [0.5, -0.25], [2, -3]]]),
        {"sample_rate": 8000.0, "max_outputs": 1},
    ),
    (
        "audio",
        "halves",
        array(np.array([[0.5, 1.5, 2.5, -0.5, -1.5, -2.5]]) / 32768),
        {"sample_rate": 11025.5},
    ),
    ("text", "one", {"dtype": "object", "shape": [], "values": ["# hello"]}, {}),
    ("text", "table", {"dtype": "object", "shape": [2, 2], "values": ["a", "b", "c", "d"]}, {}),
    (
        "tensor_summary",
        "floats",
        array([[1, 2], [3, 4]]),
        {"summary_description": "d", "display_name": "n", "family": "f"},
    ),
    ("tensor_summary", "bools", array([True, False], "bool"), {}),
]


def main():
    rows = []
    for function, name, given, kwargs in CASES:
        tf.reset_default_graph()
        value = tf.constant(rebuilt(given))
        made = getattr(tf.summary, function)(name, value, **kwargs)
        with tf.Session() as session:
            message = tf.Summary.FromString(session.run(made))
            images = []
            for part in message.value:
                if part.HasField("image"):
                    pixels = session.run(tf.image.decode_png(part.image.encoded_image_string))
                    images.append({"shape": list(pixels.shape), "pixels": pixels.ravel().tolist()})
                    part.image.encoded_image_string = b""
        rows.append(
            {
                "function": function,
                "name": name,
                "given": given,
                "kwargs": kwargs,
                "op": made.op.name,
                "message": message.SerializeToString().hex(),
                "images": images,
            }
        )
    json.dump(
        {"tensorflow": tf.__version__, "rows": rows}, sys.stdout, indent=None, separators=(",", ":")
    )
    print()


if __name__ == "__main__":
    main()
