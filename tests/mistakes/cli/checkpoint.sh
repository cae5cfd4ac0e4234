# List a checkpoint that is not there.
# refused: command
# got: no checkpoint model
# expected: neither model.h5, nor model.index
# fix: as Saver.save returned it

python -m headrace checkpoint ls model
