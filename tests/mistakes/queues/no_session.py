# Start queue runners without a session.
# refused: building
# got: there is no default session
# expected: in which to start queue runners
# fix: pass sess

import headrace as hr

names = hr.train.string_input_producer(["a.txt", "b.txt"])
threads = hr.train.start_queue_runners()  # the mistake
