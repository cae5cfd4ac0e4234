# Misspell the name of a device.
# refused: step: devices are those of the session
# got: device:tsk:0
# expected: devices: /job:localhost/task:0/device:cpu:0
# fix: name one of them

import headrace as hr

with hr.device("/job:worker/tsk:0"):
    x = hr.constant(1.0, name="x")  # the mistake
with hr.Session() as session:
    session.run(x)
