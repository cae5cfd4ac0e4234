"""Make ``images.json``: what TensorFlow 1.15 makes of encoded images.

Run with a Python that has TensorFlow 1.15: ``python generate_images.py``, in this folder. Bytes
are written as text in Latin-1.
"""

import json

import numpy as np
import tensorflow as tf

RNG = np.random.RandomState(0)
ACCURATE = {"dct_method": "INTEGER_ACCURATE"}


def noise(*shape):
    return RNG.randint(0, 256, shape).astype(np.uint8)


def smooth(channels):
    ramp = np.add.outer(np.arange(15) * 8, np.arange(21) * 4)[..., None]
    return (ramp + np.arange(channels) * 20).astype(np.uint8)


def bmp(pixels):
    """The bytes of an image, which TensorFlow does not write itself."""
    height, width, channels = pixels.shape
    size = (width * channels + 3) // 4 * 4
    order = [2, 1, 0, 3][:channels]
    rows = b"".join(row.tobytes().ljust(size, b"\0") for row in pixels[::-1, :, order])
    head = [(54 + len(rows), 4), (0, 4), (54, 4), (40, 4), (width, 4), (height, 4), (1, 2)]
    head += [(8 * channels, 2), *[(0, 4)] * 6]
    return b"BM" + b"".join(value.to_bytes(count, "little") for value, count in head) + rows


def main():
    assert tf.__version__.startswith("1.15"), tf.__version__
    image = tf.image
    with tf.compat.v1.Session() as session:
        data = {
            **{"png%d" % c: session.run(image.encode_png(noise(2, 3, c))) for c in (1, 2, 3, 4)},
            "png16": session.run(image.encode_png(noise(2, 3, 1).astype(np.uint16) * 100)),
            "jpeg1": session.run(image.encode_jpeg(smooth(1))),
            "jpeg3": session.run(image.encode_jpeg(smooth(3))),
            "jpeg444": session.run(image.encode_jpeg(smooth(3), chroma_downsampling=False)),
            "bmp3": bmp(noise(2, 3, 3)),
            "bmp4": bmp(noise(2, 3, 4)),
        }
        calls = [
            *(("decode_png", n, {"channels": c}) for n in list(data)[:4] for c in (0, 1, 3, 4)),
            ("decode_png", "png3", {"dtype": "uint16"}),
            ("decode_png", "png16", {"dtype": "uint16"}),
            ("decode_png", "png16", {}),
            ("decode_png", "jpeg1", {}),
            ("decode_jpeg", "png4", {}),
            *(("decode_jpeg", "jpeg1", {"channels": c, **ACCURATE}) for c in (0, 1, 3)),
            *(("decode_jpeg", "jpeg3", {"channels": c, **ACCURATE}) for c in (0, 1, 3, 4)),
            *(("decode_jpeg", "jpeg3", {"ratio": r, **ACCURATE}) for r in (2, 4, 8)),
            ("decode_jpeg", "jpeg444", ACCURATE),
            ("decode_and_crop_jpeg", "jpeg3", {"crop_window": [2, 3, 5, 7], **ACCURATE}),
            ("decode_and_crop_jpeg", "jpeg3", {"crop_window": [2, 3, 50, 7], **ACCURATE}),
            *(("decode_bmp", n, {"channels": c}) for n in ("bmp3", "bmp4") for c in (0, 3, 4)),
            *(("decode_image", n, {}) for n in ("png2", "png4", "bmp3")),
            ("decode_image", "png3", {"dtype": "float32"}),
            ("decode_image", "bmp3", {"dtype": "float32"}),
            ("decode_image", "png3", {"channels": 1, "dtype": "uint16"}),
            ("decode_image", "jpeg3", {"channels": 4}),
            ("decode_image", "bmp3", {"channels": 1}),
            ("extract_jpeg_shape", "jpeg1", {}),
            ("extract_jpeg_shape", "jpeg3", {"output_type": "int64"}),
            ("is_jpeg", "jpeg3", {}),
            ("is_jpeg", "png3", {}),
        ]
        rows = []
        for function, name, arguments in calls:
            given = {
                key: getattr(tf, value) if key in ("dtype", "output_type") else value
                for key, value in arguments.items()
            }
            row = {"call": function, "image": name, "arguments": arguments}
            try:
                found = session.run(getattr(image, function)(data[name], **given))
                row.update(shape=list(found.shape), dtype=str(found.dtype))
                row["values"] = found.ravel().tolist()
            except tf.errors.OpError as error:
                row["error"] = type(error).__name__
            rows.append(row)
    with open("images.json", "w") as file:
        images = {name: content.decode("latin-1") for name, content in data.items()}
        file.write('{"made by": "TensorFlow %s", "images":\n' % tf.__version__)
        file.write(json.dumps(images) + ', "rows": [\n')
        file.write(",\n".join(json.dumps(row) for row in rows))
        file.write("\n]}\n")


if __name__ == "__main__":
    main()
