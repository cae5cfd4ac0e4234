# Load a saved model from a folder without one.
# refused: step: models are files
# got: export
# expected: the folder does not exist
# fix: hr.saved_model.simple_save

import headrace as hr

with hr.Session() as session:
    hr.saved_model.load(session, ["serve"], "export")  # the mistake
