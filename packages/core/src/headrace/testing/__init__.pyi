from headrace_testing import *
