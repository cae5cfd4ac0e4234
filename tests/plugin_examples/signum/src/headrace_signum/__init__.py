"""The plugin: it names the optimizer, whose module is imported when a program first uses it."""

from headrace.extend import hookimpl


@hookimpl
def headrace_register_names(registry):
    registry.add("SignumOptimizer", "headrace_signum.optimizer:SignumOptimizer")
