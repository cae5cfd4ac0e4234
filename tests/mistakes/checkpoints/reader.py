# Read a tensor that a checkpoint does not have.
# refused: step: checkpoints are files
# got: 'w'
# expected: it has 'v'
# fix: are not in model.h5

import headrace as hr

v = hr.Variable([1.0], name="v")
with hr.Session() as session:
    session.run(v.initializer)
    path = hr.train.Saver().save(session, "model")
value = hr.train.load_variable(path, "w")  # the mistake
