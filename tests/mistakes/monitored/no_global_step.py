# Count steps without a global step.
# refused: building
# got: StepCounterHook
# expected: Global step should be created
# fix: hr.train.get_or_create_global_step()

import headrace as hr

hook = hr.train.StepCounterHook()
with hr.train.MonitoredSession(hooks=[hook]) as session:  # the mistake
    pass
