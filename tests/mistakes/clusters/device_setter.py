# Place variables on parameter servers that are no number.
# refused: building
# got: got 'two'
# expected: a number of tasks
# fix: ps_tasks must be

import headrace as hr

setter = hr.train.replica_device_setter(ps_tasks="two")  # the mistake
