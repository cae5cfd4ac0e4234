# Restore a variable that was added later.
# refused: step: checkpoints are files
# got: 'layer/weights' is not in it
# expected: in it and not asked for: 'layer/w'
# fix: did you mean 'layer/w'

import headrace as hr


def save():
    with hr.Graph().as_default(), hr.Session() as session:
        hr.get_variable("layer/w", [3])
        session.run(hr.global_variables_initializer())
        hr.train.Saver().save(session, "model")


save()
w = hr.get_variable("layer/weights", [3])
with hr.Session() as session:
    hr.train.Saver().restore(session, "model")  # the mistake
