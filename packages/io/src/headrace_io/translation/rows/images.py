"""Translations of ops of images."""

from __future__ import annotations

from typing import Any

from headrace.errors import AttributeValueError
from headrace.extend.translations import TranslationTable
from headrace_io.ops.images import encode_jpeg_variable_quality
from headrace_io.translation.library import hr

ROWS = TranslationTable()

ROWS.call("ResizeBilinear", hr.image.resize_bilinear, "align_corners half_pixel_centers")
ROWS.call("ResizeBicubic", hr.image.resize_bicubic, "align_corners half_pixel_centers")
ROWS.call(
    "ResizeNearestNeighbor",
    hr.image.resize_nearest_neighbor,
    "align_corners half_pixel_centers",
)
ROWS.call("ResizeArea", hr.image.resize_area, "align_corners")
ROWS.call("CropAndResize", hr.image.crop_and_resize, "method extrapolation_value")
ROWS.call("NonMaxSuppression", hr.image.non_max_suppression, "iou_threshold")
ROWS.call("NonMaxSuppressionV2", hr.image.non_max_suppression)
ROWS.call("NonMaxSuppressionV3", hr.image.non_max_suppression)
ROWS.call("AdjustContrastv2", hr.image.adjust_contrast)
ROWS.call("AdjustHue", hr.image.adjust_hue)
ROWS.call("AdjustSaturation", hr.image.adjust_saturation)
ROWS.call("RGBToHSV", hr.image.rgb_to_hsv)
ROWS.call("HSVToRGB", hr.image.hsv_to_rgb)
ROWS.call("DrawBoundingBoxes", hr.image.draw_bounding_boxes)
ROWS.call("DecodePng", hr.image.decode_png, "channels dtype")
ROWS.call("DecodeBmp", hr.image.decode_bmp, "channels")
ROWS.call("DecodeGif", hr.image.decode_gif)
ROWS.call(
    "DecodeJpeg",
    hr.image.decode_jpeg,
    "channels ratio fancy_upscaling try_recover_truncated acceptable_fraction dct_method",
)
ROWS.call("EncodePng", hr.image.encode_png, "compression")
ROWS.call(
    "EncodeJpeg",
    hr.image.encode_jpeg,
    "format quality progressive optimize_size chroma_downsampling density_unit x_density y_density "
    "xmp_metadata",
)


@ROWS.add("EncodeJpegVariableQuality")
def _encoded(node: Any) -> Any:
    return encode_jpeg_variable_quality(*node.tensors)


@ROWS.add("ExtractGlimpse")
def _glimpse(node: Any) -> Any:
    noise = node.text("noise", "uniform")
    if node.attr("uniform_noise", True) and noise != "uniform":
        raise AttributeValueError(f"uniform_noise is asked for, and noise={noise!r}; give one")
    return hr.image.extract_glimpse(
        *node.tensors,
        centered=bool(node.attr("centered", True)),
        normalized=bool(node.attr("normalized", True)),
        noise=noise,
    )
