# Save what is computed of a variable.
# refused: building
# got: got <Tensor 'add:0'
# expected: a Saver saves variables
# fix: pass the variables it is made of

import headrace as hr

v = hr.Variable(1.0, name="v")
saver = hr.train.Saver([v + 1.0])  # the mistake
