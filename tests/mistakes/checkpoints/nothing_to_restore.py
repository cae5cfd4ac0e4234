# Restore the latest checkpoint of a folder that has none.
# refused: building
# got: it is None
# expected: save_path
# fix: latest_checkpoint returns None

import headrace as hr

v = hr.Variable(1.0, name="v")
saver = hr.train.Saver()
with hr.Session() as session:
    saver.restore(session, hr.train.latest_checkpoint("logs"))  # the mistake
