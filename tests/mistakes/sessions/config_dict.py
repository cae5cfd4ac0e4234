# Configure a session with a dict.
# refused: building
# got: got {'threads': 2}
# expected: an hr.Config
# fix: hr.Config(threads=2)

import headrace as hr

session = hr.Session(config={"threads": 2})  # the mistake
