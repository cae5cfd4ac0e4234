# Leave a session without any device of the host.
# refused: building
# got: got 0
# expected: a whole number from 1 to 4096
# fix: feeds and fetches live on the first one

import headrace as hr

config = hr.Config(device_count={"cpu": 0, "gpu": 1})  # the mistake
with hr.Session(config=config) as session:
    session.run(hr.constant(1.0))
