# Decode what is no image.
# refused: step: the data are read then
# got: b'GIF or s'
# expected: PNG, JPEG, GIF
# fix: expected an image

import headrace as hr

image = hr.image.decode_png(b"GIF or so")  # the mistake
with hr.Session() as session:
    session.run(image)
