# Fetch from a monitored session after its end.
# refused: step: it stops at run time
# got: called even after
# expected: should_stop
# fix: Run

import headrace as hr

step = hr.train.create_global_step()
v = hr.assign_add(step, 1)
with hr.train.MonitoredTrainingSession(hooks=[hr.train.StopAtStepHook(last_step=1)]) as session:
    for _ in range(2):
        session.run(v)  # the mistake
