# Restore a checkpoint that is not there.
# refused: step: checkpoints are files
# got: model-1000
# expected: valid checkpoint
# fix: as Saver.save returned it

import headrace as hr

v = hr.Variable([1.0], name="v")
with hr.Session() as session:
    hr.train.Saver().restore(session, "model-1000")  # the mistake
