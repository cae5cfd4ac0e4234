"""Images in PNG, JPEG, GIF and BMP, decoded and encoded by Pillow."""
