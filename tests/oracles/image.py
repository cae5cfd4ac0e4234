"""Images."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace as hr

from .libraries import F, jax, jnn, jnp, lax, torch
from .rows import apart, normal, row, uniform

IMAGE = uniform(0.1, 0.9, 2, 4, 5, 3)
BOXES = np.array([[0.1, 0.2, 0.8, 0.9], [0.0, 0.0, 1.0, 0.5]], np.float32)


def _interpolated(x: Any, size: tuple[int, int], mode: str, **rest: Any) -> Any:
    return torch.movedim(F.interpolate(torch.movedim(x, -1, 1), size, mode=mode, **rest), 1, -1)


def _resized(x: Any, size: tuple[int, int], method: str) -> Any:
    shape = (x.shape[0], *size, x.shape[3])
    return jax.image.resize(x, shape, method, antialias=False)


def _sampled(x: Any, ys: Any, xs: Any) -> Any:
    """Return the image at the crossings of rows and columns, bilinearly."""
    at = jnp.meshgrid(jnp.asarray(ys, x.dtype), jnp.asarray(xs, x.dtype), indexing="ij")
    channels = [
        jax.scipy.ndimage.map_coordinates(x[..., c], at, order=1) for c in range(x.shape[-1])
    ]
    return jnp.stack(channels, -1)


def _crops(x: Any) -> Any:
    """Return crops of 3 by 4 by the boxes, from the first and the second image."""
    crops = []
    for image, (top, left, bottom, right) in zip(x, BOXES, strict=True):
        ys = np.linspace(top, bottom, 3) * (x.shape[1] - 1)
        xs = np.linspace(left, right, 4) * (x.shape[2] - 1)
        crops.append(_sampled(image, ys, xs))
    return jnp.stack(crops)


def _padded_like_edges(x: Any, kernel: Any) -> Any:
    """Correlate each channel with a 3 by 3 kernel, edges reflected."""
    x = F.pad(torch.movedim(x, -1, 1), (1, 1, 1, 1), mode="reflect")
    channels = x.shape[1]
    kernels = torch.tensor(kernel, dtype=x.dtype).expand(channels, 1, 3, 3)
    return torch.movedim(F.conv2d(x, kernels, groups=channels), 1, -1)


SOBEL = [[-1, -2, -1], [0, 0, 0], [1, 2, 1]]


ROWS = [
    row("image.flip_left_right", "jnp.flip", IMAGE, theirs=lambda x: jnp.flip(x, 2)),
    row("image.flip_up_down", "jnp.flip", IMAGE, theirs=lambda x: jnp.flip(x, 1)),
    row(
        "image.rot90",
        "jnp.rot90",
        IMAGE,
        ours=lambda x: hr.image.rot90(x, 3),
        theirs=lambda x: jnp.rot90(x, 3, axes=(1, 2)),
    ),
    row(
        "image.transpose_image",
        "jnp.swapaxes",
        IMAGE,
        theirs=lambda x: jnp.swapaxes(x, 1, 2),
    ),
    row(
        "image.central_crop",
        "lax.slice",
        uniform(0, 1, 8, 4, 3),
        ours=lambda x: hr.image.central_crop(x, 0.5),
        theirs=lambda x: lax.slice(x, (2, 1, 0), (6, 3, 3)),
    ),
    row(
        "image.crop_to_bounding_box",
        "lax.dynamic_slice",
        IMAGE,
        ours=lambda x: hr.image.crop_to_bounding_box(x, 1, 2, 2, 3),
        theirs=lambda x: lax.dynamic_slice(x, (0, 1, 2, 0), (2, 2, 3, 3)),
    ),
    row(
        "image.pad_to_bounding_box",
        "jnp.pad",
        IMAGE,
        ours=lambda x: hr.image.pad_to_bounding_box(x, 1, 2, 6, 8),
        theirs=lambda x: jnp.pad(x, ((0, 0), (1, 1), (2, 1), (0, 0))),
    ),
    row(
        "image.resize_image_with_crop_or_pad",
        "lax.slice, jnp.pad",
        IMAGE,
        ours=lambda x: hr.image.resize_image_with_crop_or_pad(x, 6, 3),
        theirs=lambda x: jnp.pad(x[:, :, 1:4], ((0, 0), (1, 1), (0, 0), (0, 0))),
    ),
    row(
        "image.resize_bilinear",
        "F.interpolate",
        IMAGE,
        ours=lambda x: hr.image.resize_bilinear(x, [7, 3], align_corners=True),
        theirs=lambda x: _interpolated(x, (7, 3), "bilinear", align_corners=True),
        mode="aligned corners",
        single=True,
    ),
    row(
        "image.resize_bilinear",
        "jax.image.resize",
        IMAGE,
        ours=lambda x: hr.image.resize_bilinear(x, [7, 3], half_pixel_centers=True),
        theirs=lambda x: _resized(x, (7, 3), "bilinear"),
        mode="half-pixel centers",
        single=True,
    ),
    row(
        "image.resize_bicubic",
        "jax.image.resize",
        IMAGE,
        ours=lambda x: hr.image.resize_bicubic(x, [7, 3], half_pixel_centers=True),
        theirs=lambda x: _resized(x, (7, 3), "bicubic"),
        float32=5e-3,
        reason="weights from a table of 1024 positions, as in TensorFlow; in float32",
        single=True,
    ),
    row(
        "image.resize_nearest_neighbor",
        "F.interpolate",
        IMAGE,
        ours=lambda x: hr.image.resize_nearest_neighbor(x, [7, 3]),
        theirs=lambda x: _interpolated(x, (7, 3), "nearest"),
    ),
    row(
        "image.resize_area",
        "F.interpolate",
        uniform(0, 1, 2, 4, 6, 3),
        ours=lambda x: hr.image.resize_area(x, [2, 3]),
        theirs=lambda x: _interpolated(x, (2, 3), "area"),
        single=True,
    ),
    row(
        "image.resize_images",
        "F.interpolate",
        IMAGE,
        ours=lambda x: hr.image.resize_images(x, [7, 3], align_corners=True),
        theirs=lambda x: _interpolated(x, (7, 3), "bilinear", align_corners=True),
        single=True,
    ),
    row(
        "image.crop_and_resize",
        "jax.scipy.ndimage.map_coordinates",
        IMAGE,
        ours=lambda x: hr.image.crop_and_resize(x, BOXES, [0, 1], [3, 4]),
        theirs=_crops,
        single=True,
    ),
    row(
        "image.grayscale_to_rgb",
        "jnp.broadcast_to",
        uniform(0, 1, 2, 4, 5, 1),
        theirs=lambda x: jnp.broadcast_to(x, (2, 4, 5, 3)),
    ),
    row(
        "image.rgb_to_grayscale",
        "jnp.tensordot",
        IMAGE,
        theirs=lambda x: jnp.tensordot(x, jnp.array([0.2989, 0.587, 0.114], x.dtype), 1)[..., None],
        single=True,
    ),
    row(
        "image.adjust_brightness",
        "jnp.add",
        IMAGE,
        ours=lambda x: hr.image.adjust_brightness(x, 0.25),
        theirs=lambda x: jnp.add(x, 0.25),
        single=True,
    ),
    row(
        "image.adjust_contrast",
        "jnp.mean",
        IMAGE,
        ours=lambda x: hr.image.adjust_contrast(x, 1.5),
        theirs=lambda x: (x - (m := jnp.mean(x, (1, 2), keepdims=True))) * 1.5 + m,
        single=True,
    ),
    row(
        "image.adjust_gamma",
        "jnp.power",
        IMAGE,
        ours=lambda x: hr.image.adjust_gamma(x, 1.7, 0.9),
        theirs=lambda x: 0.9 * jnp.power(x, 1.7),
        single=True,
    ),
    row(
        "image.per_image_standardization",
        "jnn.standardize",
        normal(2, 4, 5, 3),
        theirs=lambda x: jnn.standardize(x, (1, 2, 3), epsilon=0.0),
        single=True,
    ),
    row(
        "image.total_variation",
        "jnp.diff",
        apart(2, 4, 5, 3),
        theirs=lambda x: sum(jnp.sum(jnp.abs(jnp.diff(x, axis=i)), (1, 2, 3)) for i in (1, 2)),
    ),
    row(
        "image.image_gradients",
        "jnp.diff",
        IMAGE,
        theirs=lambda x: (
            jnp.pad(jnp.diff(x, axis=1), ((0, 0), (0, 1), (0, 0), (0, 0))),
            jnp.pad(jnp.diff(x, axis=2), ((0, 0), (0, 0), (0, 1), (0, 0))),
        ),
    ),
    row(
        "image.sobel_edges",
        "F.conv2d",
        IMAGE,
        theirs=lambda x: torch.stack(
            [_padded_like_edges(x, k) for k in (SOBEL, np.transpose(SOBEL).tolist())], -1
        ),
    ),
    row(
        "image.psnr",
        "F.mse_loss",
        IMAGE,
        IMAGE,
        ours=lambda x, y: hr.image.psnr(x, y, 1.0),
        theirs=lambda x, y: (
            -10 * torch.log10(torch.stack([F.mse_loss(a, b) for a, b in zip(x, y, strict=True)]))
        ),
        single=True,
    ),
    row(
        "image.extract_glimpse",
        "lax.dynamic_slice",
        IMAGE,
        ours=lambda x: hr.image.extract_glimpse(
            x, [2, 2], [[2.0, 2.0], [2.0, 3.0]], centered=False, normalized=False
        ),
        theirs=lambda x: jnp.stack(
            [lax.dynamic_slice(x[i], (1, i + 1, 0), (2, 2, 3)) for i in (0, 1)]
        ),
        single=True,
    ),
    row(
        "extract_image_patches",
        "F.unfold",
        uniform(0, 1, 2, 4, 5, 1),
        ours=lambda x: hr.extract_image_patches(
            x, [1, 2, 2, 1], [1, 2, 1, 1], [1, 1, 1, 1], "VALID"
        ),
        theirs=lambda x: (
            F.unfold(torch.movedim(x, -1, 1), 2, stride=(2, 1))
            .reshape(2, 4, 2, 4)
            .permute(0, 2, 3, 1)
        ),
    ),
    row(
        "extract_volume_patches",
        "torch.Tensor.unfold",
        uniform(0, 1, 2, 3, 4, 3, 1),
        ours=lambda x: hr.extract_volume_patches(x, [1, 2, 2, 2, 1], [1, 1, 1, 1, 1], "VALID"),
        theirs=lambda x: (
            x[..., 0].unfold(1, 2, 1).unfold(2, 2, 1).unfold(3, 2, 1).reshape(2, 2, 3, 2, 8)
        ),
    ),
]
