"""Images: what Pillow makes of them is what TensorFlow 1.15 made."""

from __future__ import annotations

import io
import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace import errors
from tests.children import run_program
from tests.steps import run

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]

pillow = pytest.importorskip("PIL.Image")
TABLE = json.loads((Path(__file__).parent / "tables" / "images.json").read_text())
IMAGES = {name: text.encode("latin-1") for name, text in TABLE["images"].items()}
ROWS = TABLE["rows"]


def noise(*shape, dtype=np.uint8):
    return np.random.default_rng(0).integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


@pytest.mark.parametrize(
    "row", ROWS, ids=[f"{i}-{r['call']}-{r['image']}" for i, r in enumerate(ROWS)]
)
def test_images_are_decoded_as_by_tensorflow(row):
    arguments = {
        key: hr.as_dtype(value) if key in ("dtype", "output_type") else value
        for key, value in row["arguments"].items()
    }
    decoded = getattr(hr.image, row["call"])(IMAGES[row["image"]], **arguments)
    if "error" in row:
        with pytest.raises(getattr(errors, row["error"]), match=r"channels|crop_window"):
            run(decoded)
        return
    found = np.asarray(run(decoded))
    assert list(found.shape) == row["shape"]
    assert str(found.dtype) == row["dtype"]
    expected = np.reshape(row["values"], row["shape"])
    # Decoders of JPEG may differ in the last bit, and fast ones, TensorFlow's default, in more.
    loose = 0
    if row["image"].startswith("jpeg") and row["call"].startswith("decode"):
        loose = 1 if "dct_method" in row["arguments"] else 5
    np.testing.assert_allclose(found.astype(float), expected.astype(float), atol=loose or 1e-7)
    assert decoded.shape.is_compatible_with(found.shape)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("compression", [-1, 0, 9])
def test_png_loses_nothing(channels, compression):
    pixels = noise(5, 7, channels)
    encoded = hr.image.encode_png(pixels, compression)
    assert np.array_equal(run(hr.image.decode_png(encoded)), pixels)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("compression", [-1, 0, 9])
def test_png_keeps_16_bits(channels, compression):
    ramp = np.arange(5 * 7 * channels, dtype=np.uint16).reshape(5, 7, channels) * 300
    for pixels in (noise(5, 7, channels, dtype=np.uint16), ramp, ramp[:1, :1], ramp[:, :1]):
        encoded = hr.image.encode_png(pixels, compression)
        assert np.array_equal(run(hr.image.decode_png(encoded, dtype=hr.uint16)), pixels)
        assert np.array_equal(run(hr.image.decode_png(encoded)), pixels >> 8)


def test_rows_with_filters_are_smaller():
    ramp = np.add.outer(np.arange(40) * 300, np.arange(50) * 7)[..., None] + np.arange(3)
    assert len(run(hr.image.encode_png(ramp.astype(np.uint16)))) < ramp.size * 2 / 20


def chunk(name, content):
    check = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)


def deep_png(rows=bytes(26), *, width=2, height=2, bits=16, colour=2, method=0, passes=0, more=b""):
    head = struct.pack(">IIBBBBB", width, height, bits, colour, method, 0, passes)
    begin = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
    return begin + more + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (deep_png(bytes([5, *bytes(25)])), "a row has a filter that does not exist"),
        (deep_png(bytes(25)), "its pixels are 26 bytes, and 25 are there"),
        (deep_png(width=100_000, height=4000), "bytes cannot hold 4000 x 100000 pixels"),
        (deep_png(width=100_000, height=100_000), "pixels are none, or too many"),
        (deep_png(width=0), "0 pixels are none"),
        (deep_png(passes=2), "what does not exist"),
        (deep_png(method=1), "what does not exist"),
        (deep_png(colour=3), "what does not exist"),
        (deep_png(more=chunk(b"IHDR", bytes(13))), "does not begin with one header"),
        (deep_png(more=chunk(b"SOME", b"")), "'SOME' is not known"),
        (deep_png(more=chunk(b"SOME", b"")[:-1] + b"?"), "the checksum of b'SOME' is wrong"),
        (deep_png()[:-12], "cut short"),
        (deep_png()[:-30], "cut short"),
        (deep_png()[:40], "cut short"),
        (deep_png(more=chunk(b"IDAT", b"no zlib")), "damaged"),
    ],
)
def test_damaged_png_of_16_bits_is_refused(data, match):
    with pytest.raises(errors.InvalidArgumentError, match=match):
        run(hr.image.decode_png(data, dtype=hr.uint16))


def test_what_png_may_say_beside_is_passed_over():
    plain = run(hr.image.decode_png(deep_png(), dtype=hr.uint16))
    for more in (chunk(b"tEXt", b"a\0b"), chunk(b"tEXt", b"")[:-1] + b"?", chunk(b"PLTE", b"abc")):
        assert np.array_equal(run(hr.image.decode_png(deep_png(more=more), dtype=hr.uint16)), plain)
    # A transparent colour of another length than colours have is none.
    data = deep_png(more=chunk(b"tRNS", bytes(2)))
    assert (run(hr.image.decode_png(data, channels=4, dtype=hr.uint16))[..., 3] == 65535).all()


def smooth(channels):
    ramp = np.add.outer(np.arange(32) * 3, np.arange(48) * 2)[..., None]
    return (ramp + np.arange(channels) * 20).astype(np.uint8)


@pytest.mark.parametrize(
    ("channels", "arguments"),
    [
        (1, {}),
        (1, {"format": "grayscale"}),
        (3, {"format": "rgb", "quality": 100}),
        (3, {"progressive": True, "optimize_size": True}),
        (3, {"chroma_downsampling": False, "density_unit": "cm", "x_density": 7, "y_density": 9}),
        (3, {"xmp_metadata": "<x:xmpmeta/>"}),
    ],
)
def test_jpeg_loses_little(channels, arguments):
    pixels = smooth(channels)
    encoded = hr.io.encode_jpeg(pixels, **arguments)
    found, data = run([hr.io.decode_jpeg(encoded), encoded])
    np.testing.assert_allclose(found.astype(int), pixels, atol=12)
    unit = {"in": 1, "cm": 2}[arguments.get("density_unit", "in")]
    density = [arguments.get(name, 300) for name in ("x_density", "y_density")]
    assert data[13] == unit
    assert list(np.frombuffer(data, ">u2", 2, 14)) == density
    assert (b"<x:xmpmeta/>" in data) == ("xmp_metadata" in arguments)


def test_frames_of_a_gif_are_decoded():
    colours = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    frames = [pillow.new("RGB", (4, 3), colour) for colour in colours]
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:])
    data = out.getvalue()
    expected = np.stack([np.full((3, 4, 3), colour, np.uint8) for colour in colours])
    assert np.array_equal(run(hr.image.decode_gif(data)), expected)
    assert np.array_equal(run(hr.image.decode_image(data)), expected)
    first = hr.image.decode_image(data, expand_animations=False)
    assert np.array_equal(run(first), expected[0])
    assert first.shape.rank == 3
    for call in ("decode_png", "decode_jpeg"):
        with pytest.raises(errors.InvalidArgumentError, match="has 3 frames: only decode_gif and"):
            run(getattr(hr.image, call)(data))
    out = io.BytesIO()
    frames[0].save(out, "GIF")
    assert np.array_equal(run(hr.image.decode_png(out.getvalue())), expected[0])
    scaled = run(hr.image.decode_image(data, dtype=hr.float32))
    np.testing.assert_allclose(scaled, expected / 255.0)


@pytest.mark.parametrize("name", ["png1", "png3", "jpeg3"])
def test_other_images_are_taken_as_one_frame(name):
    still = hr.image.decode_image(IMAGES[name], channels=3, expand_animations=False)
    frames = run(hr.image.decode_gif(IMAGES[name]))
    assert frames.shape[0] == 1
    assert np.array_equal(frames[0], run(still))


def test_palettes_become_colours():
    palette = pillow.new("P", (2, 1))
    palette.putpalette([10, 20, 30, 40, 50, 60])
    palette.putpixel((1, 0), 1)
    out = io.BytesIO()
    palette.save(out, "PNG")
    assert run(hr.image.decode_png(out.getvalue())).tolist() == [[[10, 20, 30], [40, 50, 60]]]


# -- bad input


def damaged():
    for name, call in (("png3", "decode_png"), ("jpeg3", "decode_jpeg"), ("bmp3", "decode_bmp")):
        data = IMAGES[name]
        for length in (0, 2, len(data) // 2, len(data) - 14):
            yield pytest.param(call, data[:length], id=f"{call}-{length}")


@pytest.mark.parametrize(("call", "data"), list(damaged()))
def test_images_that_are_cut_short_are_refused(call, data):
    message = "is damaged, or cut short|expected an image in .*, got"
    for decode in (getattr(hr.image, call), hr.image.decode_image):
        with pytest.raises(errors.InvalidArgumentError, match=message):
            run(decode(data))


@pytest.mark.parametrize("call", ["decode_png", "decode_gif", "decode_bmp", "decode_image"])
def test_what_is_no_image_is_refused(call):
    with pytest.raises(errors.InvalidArgumentError, match=r"expected an image in .*, got data"):
        run(getattr(hr.image, call)(b"no image at all"))
    with pytest.raises(errors.InvalidArgumentError, match="expected an image in JPEG, got PNG"):
        run(hr.image.extract_jpeg_shape(IMAGES["png1"]))


def test_arguments_are_checked():
    data = IMAGES["jpeg3"]
    refused = [
        (lambda: hr.image.decode_png(data, channels=2), "channels must be 0, 1, 3 or 4, got 2"),
        (lambda: hr.image.decode_png(data, dtype=hr.float32), "dtype must be uint8 or uint16"),
        (lambda: hr.image.decode_png([data]), "contents must be a scalar"),
        (lambda: hr.image.decode_jpeg(data, ratio=3), "ratio must be 1, 2, 4 or 8, got 3"),
        (lambda: hr.image.decode_jpeg(data, dct_method="FAST"), "dct_method must be ''"),
        (lambda: hr.image.decode_and_crop_jpeg(data, [1, 2]), "crop_window must have shape"),
        (lambda: hr.image.decode_image(data, channels=2), "channels must be None, 0, 1, 3 or 4"),
        (lambda: hr.image.extract_jpeg_shape(data, hr.float32), "output_type must be int32"),
        (lambda: hr.image.encode_png(noise(2, 2)), "image must have shape"),
        (lambda: hr.image.encode_png(noise(2, 2, 1), 10), "compression must be -1 to 9, got 10"),
        (lambda: hr.image.encode_png(np.zeros((2, 2, 1), np.int32)), "image must be uint8 or"),
        (lambda: hr.image.encode_jpeg(smooth(3), "grayscale"), "'grayscale' needs 1 channels"),
        (lambda: hr.image.encode_jpeg(smooth(3), "cmyk"), "format must be ''"),
        (lambda: hr.image.encode_jpeg(smooth(3), quality=101), "quality must be 0 to 100"),
        (lambda: hr.image.adjust_jpeg_quality(smooth(3), 101), "quality must be 0 to 100, got 101"),
        (lambda: hr.image.adjust_jpeg_quality(smooth(3), -1), "quality must be 0 to 100, got -1"),
        (lambda: hr.image.adjust_jpeg_quality(smooth(3), [50]), "quality must be a scalar"),
        (lambda: hr.image.encode_jpeg(smooth(3), density_unit="m"), "density_unit must be 'in'"),
        (lambda: hr.image.encode_jpeg(smooth(3), x_density=0), "x_density must be 1 to 65535"),
    ]
    for call, message in refused:
        with pytest.raises(errors.InvalidArgumentError, match=message):
            call()


def test_arguments_are_checked_when_shapes_come_late():
    fed = hr.placeholder(hr.uint8)
    for encode, pixels, message in [
        (hr.image.encode_png(fed), noise(2, 2), "an image is"),
        (hr.image.encode_png(fed), noise(0, 2, 3), "an image has pixels"),
        (hr.image.encode_png(fed), noise(2, 2, 5), "1, 2, 3, 4 channels, got 5"),
        (hr.image.encode_jpeg(fed), noise(2, 2, 2), "1, 3 channels, got 2"),
        (hr.image.encode_jpeg(fed, "rgb"), noise(2, 2, 1), "'rgb' needs 3 channels"),
    ]:
        with (
            hr.Session() as session,
            pytest.raises(errors.InvalidArgumentError, match=message),
        ):
            session.run(encode, {fed: pixels})


@pytest.mark.parametrize(
    ("quality", "message"),
    [
        (101, "quality must be 0 to 100, got 101"),
        (-1, "quality must be 0 to 100, got -1"),
        ([50], r"quality must be a scalar, got shape \[1\]"),
        ([], r"quality must be a scalar, got shape \[0\]"),
    ],
)
def test_a_quality_that_is_fed_is_checked_when_it_runs(quality, message):
    fed = hr.placeholder(hr.int32)
    adjusted = hr.image.adjust_jpeg_quality(smooth(3), fed)
    with hr.Session() as session:
        assert session.run(adjusted, {fed: 50}).shape == smooth(3).shape
        with pytest.raises(errors.InvalidArgumentError, match=message):
            session.run(adjusted, {fed: quality})


@pytest.mark.parametrize("arguments", [{"fancy_upscaling": False}, {"try_recover_truncated": True}])
def test_what_pillow_does_not_do_is_refused(arguments):
    with pytest.raises(errors.UnimplementedError, match="not there"):
        hr.image.decode_jpeg(IMAGES["jpeg3"], **arguments)


def test_without_pillow_the_extra_is_named():
    program = """
import sys
import zlib
sys.modules["PIL"] = None
import headrace as hr
with hr.Session() as session:
    try:
        session.run(hr.image.decode_png(b"\\x89PNG\\r\\n\\x1a\\n"))
    except hr.errors.UnimplementedError as error:
        print(error)
"""
    done = run_program(program)
    assert 'pip install "headrace-io[images]"' in done.stdout
