# Keep more elements back than a queue has room for.
# refused: building
# got: got 20
# expected: less than the capacity 10
# fix: at least 0

import headrace as hr

queue = hr.RandomShuffleQueue(10, 20, hr.float32, shapes=[[]])  # the mistake
