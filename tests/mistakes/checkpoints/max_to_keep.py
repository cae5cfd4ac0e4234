# Say with a word how many checkpoints stay.
# refused: building
# got: got 'all'
# expected: must be a whole number
# fix: None for all

import headrace as hr

v = hr.Variable(1.0, name="v")
saver = hr.train.Saver(max_to_keep="all")  # the mistake
