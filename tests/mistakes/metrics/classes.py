# Count classes beyond the stated number.
# refused: step: the labels are fed
# got: index 5
# expected: [0, 2)
# fix: in labels

import headrace as hr

labels = hr.placeholder(hr.int64, [None], name="labels")
iou, update = hr.metrics.mean_iou(labels, [0, 1], num_classes=2)  # the mistake
with hr.Session() as session:
    session.run(hr.local_variables_initializer())
    session.run(update, {labels: [0, 5]})
