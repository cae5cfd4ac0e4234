# Generate values of another dtype than was stated.
# refused: step: the generator runs then
# got: 'one'
# expected: where int64 was expected
# fix: generator '<lambda>'

import headrace as hr

dataset = hr.data.Dataset.from_generator(lambda: iter(["one"]), hr.int64, [])  # the mistake
element = dataset.make_one_shot_iterator().get_next()
with hr.Session() as session:
    session.run(element)
