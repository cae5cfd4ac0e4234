# Serve a folder that is not there.
# refused: command
# got: model
# expected: saved model
# fix: called by the numbers of versions

python -m headrace serve models
