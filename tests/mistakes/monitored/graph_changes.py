# Build inside of a monitored session.
# refused: building
# got: cannot add Const
# expected: the graph was finalized
# fix: build the whole graph before

import headrace as hr

x = hr.constant(1.0, name="x")
step = hr.train.create_global_step()
with hr.train.MonitoredTrainingSession() as session:
    session.run(x * 2.0)  # the mistake
