# Pass a function as a hook.
# refused: building
# got: got the function 'log'
# expected: a list of hr.train.SessionRunHook
# fix: a method of a subclass

import headrace as hr


def log(context, values):
    print(values.results)


with hr.train.MonitoredSession(hooks=[log]) as session:  # the mistake
    pass
