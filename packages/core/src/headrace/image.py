"""Functions of images, as ``hr.image``."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from headrace.ops.image_boxes import (
    combined_non_max_suppression as combined_non_max_suppression,
)
from headrace.ops.image_color import adjust_brightness as adjust_brightness
from headrace.ops.image_color import adjust_contrast as adjust_contrast
from headrace.ops.image_color import adjust_gamma as adjust_gamma
from headrace.ops.image_color import adjust_hue as adjust_hue
from headrace.ops.image_color import adjust_saturation as adjust_saturation
from headrace.ops.image_color import convert_image_dtype as convert_image_dtype
from headrace.ops.image_color import grayscale_to_rgb as grayscale_to_rgb
from headrace.ops.image_color import hsv_to_rgb as hsv_to_rgb
from headrace.ops.image_color import per_image_standardization as per_image_standardization
from headrace.ops.image_color import random_brightness as random_brightness
from headrace.ops.image_color import random_contrast as random_contrast
from headrace.ops.image_color import random_hue as random_hue
from headrace.ops.image_color import random_saturation as random_saturation
from headrace.ops.image_color import rgb_to_grayscale as rgb_to_grayscale
from headrace.ops.image_color import rgb_to_hsv as rgb_to_hsv
from headrace.ops.image_color import rgb_to_yiq as rgb_to_yiq
from headrace.ops.image_color import rgb_to_yuv as rgb_to_yuv
from headrace.ops.image_color import yiq_to_rgb as yiq_to_rgb
from headrace.ops.image_color import yuv_to_rgb as yuv_to_rgb
from headrace.ops.image_crop import central_crop as central_crop
from headrace.ops.image_crop import crop_to_bounding_box as crop_to_bounding_box
from headrace.ops.image_crop import flip_left_right as flip_left_right
from headrace.ops.image_crop import flip_up_down as flip_up_down
from headrace.ops.image_crop import pad_to_bounding_box as pad_to_bounding_box
from headrace.ops.image_crop import random_crop as random_crop
from headrace.ops.image_crop import random_flip_left_right as random_flip_left_right
from headrace.ops.image_crop import random_flip_up_down as random_flip_up_down
from headrace.ops.image_crop import resize_image_with_crop_or_pad as resize_image_with_crop_or_pad
from headrace.ops.image_crop import resize_image_with_crop_or_pad as resize_with_crop_or_pad
from headrace.ops.image_crop import rot90 as rot90
from headrace.ops.image_crop import transpose_image as transpose
from headrace.ops.image_crop import transpose_image as transpose_image
from headrace.ops.image_glimpse import extract_glimpse as extract_glimpse
from headrace.ops.image_quality import draw_bounding_boxes as draw_bounding_boxes
from headrace.ops.image_quality import image_gradients as image_gradients
from headrace.ops.image_quality import non_max_suppression as non_max_suppression
from headrace.ops.image_quality import non_max_suppression_overlaps as non_max_suppression_overlaps
from headrace.ops.image_quality import non_max_suppression_padded as non_max_suppression_padded
from headrace.ops.image_quality import (
    non_max_suppression_with_scores as non_max_suppression_with_scores,
)
from headrace.ops.image_quality import psnr as psnr
from headrace.ops.image_quality import sobel_edges as sobel_edges
from headrace.ops.image_quality import ssim as ssim
from headrace.ops.image_quality import ssim_multiscale as ssim_multiscale
from headrace.ops.image_quality import total_variation as total_variation
from headrace.ops.image_resize import ResizeMethod as ResizeMethod
from headrace.ops.image_resize import crop_and_resize as crop_and_resize
from headrace.ops.image_resize import resize_area as resize_area
from headrace.ops.image_resize import resize_bicubic as resize_bicubic
from headrace.ops.image_resize import resize_bilinear as resize_bilinear
from headrace.ops.image_resize import resize_image_with_pad as resize_image_with_pad
from headrace.ops.image_resize import resize_images as resize
from headrace.ops.image_resize import resize_images as resize_images
from headrace.ops.image_resize import resize_nearest_neighbor as resize_nearest_neighbor
from headrace.ops.image_sampling import (
    sample_distorted_bounding_box as sample_distorted_bounding_box,
)
from headrace.ops.pooling import extract_image_patches as extract_image_patches
from headrace.ops.pooling import extract_patches as extract_patches
from headrace.plugins.namespaces import added_names as _added_names

if not _TYPE_CHECKING:
    __getattr__, __dir__ = _added_names("image", __name__)
