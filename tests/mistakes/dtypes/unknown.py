# Name a dtype that is not there.
# refused: building
# got: 'flot32'
# expected: the dtypes are
# fix: float32

import headrace as hr

x = hr.placeholder("flot32", [2])  # the mistake
