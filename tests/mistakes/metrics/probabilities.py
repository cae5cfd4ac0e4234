# Give logits where probabilities are expected.
# refused: step: the values are fed
# got: [-3 2.5]
# expected: predictions must be in [0, 1]
# fix: Condition x >= y

import headrace as hr

predictions = hr.placeholder(hr.float32, [None], name="predictions")
area, update = hr.metrics.auc([True, False], predictions)  # the mistake
with hr.Session() as session:
    session.run(hr.local_variables_initializer())
    session.run(update, {predictions: [-3.0, 2.5]})
