# Name an output of a signature in place of the tensor.
# refused: building
# got: got 'scores:0'
# expected: a tensor or sparse tensor
# fix: dictionaries of tensors

import headrace as hr

x = hr.placeholder(hr.float32, [None], name="x")
scores = hr.identity(x, name="scores")
signature = hr.saved_model.predict_signature_def({"x": x}, {"scores": "scores:0"})  # the mistake
