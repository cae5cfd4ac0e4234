# Show a model that is not there.
# refused: command
# got: export
# expected: no saved model
# fix: hr.saved_model.simple_save

python -m headrace show export
