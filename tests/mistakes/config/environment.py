# Set an environment variable to a value that it does not take.
# refused: building
# got: got 'fast'
# expected: HEADRACE_EXECUTOR must be
# fix: plan or plain

import os

import headrace as hr

os.environ["HEADRACE_EXECUTOR"] = "fast"
session = hr.Session()  # the mistake
