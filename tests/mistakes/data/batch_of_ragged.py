# Batch elements of different shapes.
# refused: step: the shapes are those of elements
# got: element 1 has [2]
# expected: element 0 has shape [1]
# fix: padded_batch

import headrace as hr

dataset = hr.data.Dataset.range(1, 4).map(lambda n: hr.zeros([n])).batch(3)
element = dataset.make_one_shot_iterator().get_next()  # the mistake
with hr.Session() as session:
    session.run(element)
