# Write a device of a placement rule as words.
# refused: building
# got: 'gpu 0'
# expected: expected parts of
# fix: /device:<kind>:<index>

import headrace as hr

rule = hr.PlacementRule("weights/*", "gpu 0")  # the mistake
policy = hr.PlacementPolicy([rule])
