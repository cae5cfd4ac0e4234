# Write the memory of a device as a word.
# refused: building
# got: got 'much'
# expected: a number of bytes
# fix: '512 MiB'

import headrace as hr

policy = hr.PlacementPolicy([], memory={"/cpu:0": "much"})  # the mistake
