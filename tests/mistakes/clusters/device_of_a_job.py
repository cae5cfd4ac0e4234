# Place an operation on a job where there is no cluster.
# refused: step: devices are those of the session
# got: '/job:ps/task:0'
# expected: devices: /job:localhost/task:0/device:cpu:0
# fix: name one of them

import headrace as hr

with hr.device("/job:ps/task:0"):
    v = hr.Variable(1.0, name="v")  # the mistake
with hr.Session() as session:
    session.run(v.initializer)
