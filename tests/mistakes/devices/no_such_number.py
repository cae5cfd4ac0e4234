# Place an operation on the second of one device.
# refused: step: devices are those of the session
# got: '/device:cpu:7'
# expected: devices: /job:localhost/task:0/device:cpu:0
# fix: allow_soft_placement=True

import headrace as hr

with hr.device("/cpu:7"):
    x = hr.constant(1.0, name="x")  # the mistake
with hr.Session() as session:
    session.run(x)
