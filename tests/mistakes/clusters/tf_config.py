# Describe the task of a cluster by text that is no JSON.
# refused: building
# got: '{worker: 0}'
# expected: TF_CONFIG is no JSON
# fix: Expecting property name

import os

import headrace as hr

os.environ["TF_CONFIG"] = "{worker: 0}"
config = hr.dist.tf_config()  # the mistake
