from headrace_testing.fuzz import *
