# Serve a folder without saved models.
# refused: command
# got: holds no saved model
# expected: folders with saved models
# fix: called by the numbers of versions

python -m headrace serve .
