from headrace_testing.samples import SAMPLES as SAMPLES
from headrace_testing.samples import WITHOUT_SAMPLES as WITHOUT_SAMPLES
