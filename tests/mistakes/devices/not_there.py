# Place an operation on a device that is not there.
# refused: step: devices are those of the session
# got: '/device:npu:0'
# expected: devices: /job:localhost/task:0/device:cpu:0
# fix: allow_soft_placement=True

import headrace as hr

with hr.device("/npu:0"):
    x = hr.constant(1.0, name="x")  # the mistake
with hr.Session() as session:
    session.run(x)
