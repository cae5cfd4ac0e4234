# Misspell an op.
# refused: command
# got: 'MatMull'
# expected: no op or function
# fix: did you mean MatMul

python -m headrace ops MatMull
