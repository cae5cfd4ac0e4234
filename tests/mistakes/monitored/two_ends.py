# Say in two ways where training stops.
# refused: building
# got: num_steps or last_step
# expected: Only one of
# fix: can be specified

import headrace as hr

hook = hr.train.StopAtStepHook(num_steps=10, last_step=20)  # the mistake
