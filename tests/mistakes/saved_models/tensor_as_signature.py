# Pass a tensor as a signature.
# refused: building
# got: got <Tensor 'x:0'
# expected: what hr.saved_model.build_signature_def returns
# fix: build_signature_def

import headrace as hr

x = hr.placeholder(hr.float32, [None], name="x")
builder = hr.saved_model.builder.SavedModelBuilder("export")
with hr.Session() as session:
    builder.add_meta_graph_and_variables(session, "serve", {"score": x})  # the mistake
