# Let a device setter choose by what is no function.
# refused: building
# got: got 'round robin'
# expected: must be a function
# fix: ps_strategy

import headrace as hr

setter = hr.train.replica_device_setter(ps_tasks=2, ps_strategy="round robin")  # the mistake
