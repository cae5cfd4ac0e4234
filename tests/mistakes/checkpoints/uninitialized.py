# Save variables that have no values.
# refused: step: another step may initialize it
# got: have no value: v
# expected: cannot save
# fix: hr.global_variables_initializer()

import headrace as hr

v = hr.Variable([1.0], name="v")
with hr.Session() as session:
    hr.train.Saver().save(session, "model")  # the mistake
