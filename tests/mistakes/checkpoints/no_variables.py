# Make a saver before the variables.
# refused: building
# got: there are no variables to save
# expected: make the Saver after the model
# fix: or pass var_list

import headrace as hr

saver = hr.train.Saver()  # the mistake
v = hr.Variable([1.0], name="v")
