# Save under a name with a zero character.
# refused: step: saving needs values
# got: 'model\x00'
# expected: no name of a file
# fix: save_path holds a zero character

import headrace as hr

v = hr.Variable([1.0], name="v")
with hr.Session() as session:
    session.run(v.initializer)
    hr.train.Saver().save(session, "model\0")  # the mistake
