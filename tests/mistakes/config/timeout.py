# Give a deadline as text.
# refused: building
# got: got 'soon'
# expected: a number of seconds above 0
# fix: or None

import headrace as hr

config = hr.Config(timeout="soon")  # the mistake
