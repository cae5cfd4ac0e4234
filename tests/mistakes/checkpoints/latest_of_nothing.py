# Restore the latest checkpoint of an empty folder.
# refused: step: checkpoints are files
# got: None
# expected: save_path
# fix: where a folder has no checkpoint

import headrace as hr

v = hr.Variable([1.0], name="v")
with hr.Session() as session:
    hr.train.Saver().restore(session, hr.train.latest_checkpoint("."))  # the mistake
