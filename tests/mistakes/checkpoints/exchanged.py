# Exchange the session and the path.
# refused: step: saving needs values
# got: got <Session
# expected: the path of a checkpoint
# fix: save_path must be

import headrace as hr

v = hr.Variable([1.0], name="v")
with hr.Session() as session:
    session.run(v.initializer)
    hr.train.Saver().save("model", session)  # the mistake
