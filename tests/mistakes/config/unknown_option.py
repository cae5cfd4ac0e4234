# Misspell an option of a session.
# refused: building
# got: 'thread'
# expected: Config has no setting
# fix: did you mean 'threads'

import headrace as hr

config = hr.Config(thread=2)  # the mistake
