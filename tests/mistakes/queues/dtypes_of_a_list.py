# Join queues of different dtypes.
# refused: building
# got: 'a' of float32
# expected: the same components
# fix: 'b' of int32

import headrace as hr

a = hr.FIFOQueue(10, hr.float32, name="a")
b = hr.FIFOQueue(10, hr.int32, name="b")
c = hr.QueueBase.from_list(0, [a, b])  # the mistake
