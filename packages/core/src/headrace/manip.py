"""Functions that move elements of tensors, as ``hr.manip``."""

from headrace.functions import batch_to_space_nd as batch_to_space_nd
from headrace.functions import gather_nd as gather_nd
from headrace.functions import reshape as reshape
from headrace.functions import reverse as reverse
from headrace.functions import roll as roll
from headrace.functions import scatter_nd as scatter_nd
from headrace.functions import space_to_batch_nd as space_to_batch_nd
from headrace.functions import tile as tile
