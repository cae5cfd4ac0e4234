"""Make ``images.json``: what TensorFlow 1.15 makes of encoded images.

Run with a Python that has TensorFlow 1.15: ``python generate_images.py``, in this folder. Bytes
are written as text in Latin-1.
"""

import json
import struct
import zlib

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


ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2)]
ADAM7.append((0, 1, 1, 2))


def foretold(kind, left, above, corner):
    guess = left + above - corner
    nearest = min((left, above, corner), key=lambda value: abs(guess - value))
    return [0, left, above, (left + above) // 2, nearest][kind]


def filtered(pixels, kinds):
    """The rows of an image in PNG, with each kind of filter in turn."""
    deep = pixels.dtype.itemsize
    made, before = b"", None
    for number, row in enumerate(pixels):
        line = list(row.astype(">u%d" % deep).tobytes())
        size = pixels.shape[2] * deep
        before = before or [0] * len(line)
        kind = kinds[number % len(kinds)]
        left, corner = [0] * size + line, [0] * size + before
        rest = [
            (line[i] - foretold(kind, left[i], before[i], corner[i])) % 256
            for i in range(len(line))
        ]
        made, before = made + bytes([kind, *rest]), line
    return made


def png(pixels, kinds=(0, 1, 2, 3, 4), interlaced=0, clear=()):
    """The bytes of an image with filters, passes and a transparent colour as one likes."""
    height, width, channels = pixels.shape
    bits = 8 * pixels.dtype.itemsize
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    parts = [pixels[y::v, x::u] for x, y, u, v in (ADAM7 if interlaced else [(0, 0, 1, 1)])]
    rows = zlib.compress(b"".join(filtered(part, kinds) for part in parts if part.size))
    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced)
    key = struct.pack(">%dH" % len(clear), *clear)
    chunks = [(b"IHDR", head), (b"tRNS", key), (b"IDAT", rows[:9]), (b"IDAT", rows[9:])]
    made = b"\x89PNG\r\n\x1a\n"
    for name, content in [*chunks, (b"IEND", b"")]:
        if content or name == b"IEND":
            check = struct.pack(">I", zlib.crc32(name + content) & 0xFFFFFFFF)
            made += struct.pack(">I", len(content)) + name + content + check
    return made


def deep_pngs():
    """Images of 16 bits by what is special about them."""
    made = {}
    for channels in (1, 2, 3, 4):
        wide = noise(6, 3, channels) * np.uint16(257) ^ noise(6, 3, channels)
        made["deep%d" % channels] = png(wide)
        ramp = np.arange(9 * 5 * channels).reshape(9, 5, channels).astype(np.uint16) * 97
        made["interlaced%d" % channels] = png(ramp, (3, 4), 1)
    clear = noise(2, 3, 3) * np.uint16(257)
    made["clear3"] = png(clear, clear=clear[1, 1])
    made["clear1"] = png(clear[..., :1], clear=clear[1, 1, :1])
    made["clear3 of 8 bits"] = png(clear.astype(np.uint8), clear=clear.astype(np.uint8)[1, 1])
    made["clear1 of 8 bits"] = png(
        clear[..., :1].astype(np.uint8), clear=clear.astype(np.uint8)[1, 1, :1]
    )
    made["a pixel"] = png(clear[:1, :1], interlaced=1)
    return made


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
            "colours": session.run(image.encode_png(noise(6, 9, 3))),
        }
        deep = deep_pngs()
        data.update(deep)
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
            ("decode_png", "colours", {"channels": 1}),
            ("decode_png", "colours", {"channels": 1, "dtype": "uint16"}),
            *(
                ("decode_png", name, {"channels": c, "dtype": dtype})
                for name in sorted(deep)
                for c in (0, 1, 3, 4)
                for dtype in ("uint8", "uint16")
            ),
            ("decode_image", "deep3", {"dtype": "float32"}),
            ("decode_image", "interlaced4", {"dtype": "uint16", "channels": 3}),
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
