# Parse another number of values than an example has.
# refused: step: examples are data
# got: has 2 values
# expected: expected 3
# fix: feature 'a'

import headrace as hr

values = hr.train.Feature(float_list=hr.train.FloatList(value=[1.0, 2.0]))
example = hr.train.Example(features=hr.train.Features(feature={"a": values}))
features = {"a": hr.FixedLenFeature([3], hr.float32)}
found = hr.parse_single_example(example.SerializeToString(), features)  # the mistake
with hr.Session() as session:
    session.run(found)
