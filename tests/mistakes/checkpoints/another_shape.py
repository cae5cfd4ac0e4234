# Restore a variable whose shape has changed.
# refused: step: checkpoints are files
# got: has shape [4, 4]
# expected: in the checkpoint [3, 4]
# fix: nothing was changed

import headrace as hr


def save(shape):
    with hr.Graph().as_default(), hr.Session() as session:
        hr.get_variable("w", shape)
        session.run(hr.global_variables_initializer())
        hr.train.Saver().save(session, "model")


save([3, 4])
w = hr.get_variable("w", [4, 4])
with hr.Session() as session:
    hr.train.Saver().restore(session, "model")  # the mistake
