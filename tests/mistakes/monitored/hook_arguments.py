# Stop both after steps and at a step.
# refused: building
# got: num_steps or last_step
# expected: Only one of
# fix: can be specified

import headrace as hr

hook = hr.train.StopAtStepHook(num_steps=10, last_step=100)  # the mistake
