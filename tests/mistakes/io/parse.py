# Parse an example without a feature.
# refused: step: the examples are read then
# got: the example has no feature 'label'
# expected: default value
# fix: there is no

import headrace as hr

example = hr.train.Example()
features = {"label": hr.io.FixedLenFeature([], hr.int64)}
parsed = hr.io.parse_single_example(example.SerializeToString(), features)  # the mistake
with hr.Session() as session:
    session.run(parsed)
