# Restore a file that is no checkpoint.
# refused: step: checkpoints are files
# got: b'weights'
# expected: expected b'headrace-checkpoint '
# fix: is not a Headrace checkpoint

from pathlib import Path

import headrace as hr

Path("model.h5").write_text("weights")
v = hr.Variable([1.0], name="v")
with hr.Session() as session:
    hr.train.Saver().restore(session, "model")  # the mistake
