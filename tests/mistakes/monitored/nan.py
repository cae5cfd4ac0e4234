# Train until the loss is no number.
# refused: step: the loss is known only then
# got: NaN loss
# expected: during training
# fix: NaN

import headrace as hr

step = hr.train.create_global_step()
x = hr.placeholder(hr.float32, [], name="x")
loss = hr.log(x, name="loss")
with hr.train.MonitoredTrainingSession(hooks=[hr.train.NanTensorHook(loss)]) as session:
    session.run(loss, {x: -1.0})  # the mistake
