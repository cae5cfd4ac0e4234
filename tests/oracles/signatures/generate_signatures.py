"""The public names of TensorFlow 1.15 with their arguments: facts, a line each.

Run under TensorFlow's Python, this file writes them anew::

    cd tests/oracles/signatures && python3.7 generate_signatures.py tensorflow.txt

A line is ``kind name(arguments)`` or ``kind name = value``. The kinds are ``function``, ``class``
(followed by ``< bases`` that are public), ``alias`` of a class that stands further up, ``method``,
``property``, ``message`` (of protobuf), ``constant`` and ``module``. A class has a line for what it
does not have from a public base. How a default is written is the same for both libraries.
"""

from __future__ import annotations

import collections
import enum
import inspect
import math
import sys
import types
import unittest

# What is an interface of its own, or a door to what TensorFlow is made of.
APART = {
    "autograph", "compat", "contrib", "distribute", "estimator", "experimental", "feature_column",
    "keras", "lite", "pywrap_tensorflow", "raw_ops", "tools", "tpu", "user_ops",
}  # fmt: skip
PLAIN = (type(None), bool, int, str, bytes)
OF_PYTHON = (object, tuple, list, dict, Exception, BaseException, unittest.TestCase)


def written(value):
    """Return a default as text: an expression of Python in which other objects are names."""
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, float):
        return f"float('{value}')" if math.isnan(value) or math.isinf(value) else repr(value)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        items = ", ".join(written(x) for x in value)
        return f"({items},)" if len(value) == 1 else f"({items})"
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, type) and value.__name__.startswith(("DatasetV1", "TFRecordDatasetV1")):
        return value.__name__.replace("V1", "")
    if type(value).__name__ in ("DType", "_DType"):
        return value.name
    if isinstance(value, type) or inspect.isroutine(value):
        return value.__name__.strip("<>").lstrip("_")
    return type(value).__name__.lstrip("_")


def arguments(positional, defaults, star, keywords, keyword_only, double_star):
    """Return the text of a signature.

    Args:
        positional: the names of arguments that may be given by position.
        defaults: the values of the last of them.
        star: the name of what takes further positions, or None.
        keywords: the defaults of arguments that are given by name only.
        keyword_only: their names.
        double_star: the name of what takes further names, or None.
    """
    words = list(positional)
    for i, value in enumerate(defaults, len(words) - len(defaults)):
        words[i] += "=" + written(value)
    if star or keyword_only:
        words.append("*" + (star or ""))
    words += [n + ("=" + written(keywords[n]) if n in keywords else "") for n in keyword_only]
    if double_star:
        words.append("**" + double_star)
    return "(" + ", ".join(words) + ")"


def _of(function, bound=False):
    from tensorflow.python.util import tf_inspect

    try:
        spec = tf_inspect.getfullargspec(function)
        if spec.args[bound:] == [] and hasattr(function, "__wrapped__"):
            # Context managers, whose arguments TensorFlow's own inspection does not find.
            spec = inspect.getfullargspec(inspect.unwrap(function))
    except TypeError:
        return None
    return arguments(
        spec.args[bound:],
        spec.defaults or (),
        spec.varargs,
        spec.kwonlydefaults or {},
        spec.kwonlyargs,
        spec.varkw,
    )


def _of_class(cls):
    if cls.__init__ is object.__init__:
        return _of(cls.__new__, bound=True) if cls.__new__ is not object.__new__ else "()"
    if cls.__init__ in (Exception.__init__, BaseException.__init__):
        return "(*args)"
    return _of(cls.__init__, bound=True)


def _public(module):
    return [n for n in sorted(dir(module)) if not n.startswith("_")]


def _is_message(value):
    return isinstance(value, type) and hasattr(value, "DESCRIPTOR")


def _lines(tensorflow):
    told, lines, classes = {}, [], []
    waiting = collections.deque([("", tensorflow)])
    while waiting:
        prefix, module = waiting.popleft()
        for name in _public(module):
            value, path = getattr(module, name), prefix + name
            if isinstance(value, types.ModuleType):
                if (not prefix and name in APART) or "tensorflow" not in value.__name__:
                    continue
                lines.append("module " + path)
                waiting.append((path + ".", value))
            elif _is_message(value):
                lines.append("message " + path)
            elif isinstance(value, type):
                if value in told:
                    lines.append(f"alias {path} = {told[value]}")
                else:
                    told[value] = path
                    classes.append(value)
            elif callable(value) and not isinstance(value, enum.Enum):
                lines.append(f"function {path}{_of(value) or '(*args, **kwargs)'}")
            elif type(value).__module__ != "__future__":
                lines.append(f"constant {path} = {written(value)}")
    for cls in classes:
        bases = [told[base] for base in cls.__mro__[1:] if base in told]
        line = f"class {told[cls]}{_of_class(cls) or '(*args, **kwargs)'}"
        lines.append(line + (" < " + ", ".join(bases) if bases else ""))
        lines += _members(told[cls], cls, [*OF_PYTHON, *(c for c in told if c is not cls)])
    return sorted(lines, key=lambda line: line.split(" ", 1)[1])


def _members(path, cls, others):
    """Return the lines of what a class has that none of the ``others`` gave it."""
    bases = [vars(base) for c in others if issubclass(cls, c) for base in c.__mro__]
    lines = []
    for name in _public(cls):
        value = inspect.getattr_static(cls, name)
        if any(names.get(name) is value for names in bases):
            continue
        if isinstance(value, (staticmethod, classmethod)):
            signature = _of(value.__func__, bound=isinstance(value, classmethod))
            lines.append(f"method {path}.{name}{signature or '(*args, **kwargs)'}")
        elif callable(value) and not isinstance(value, (enum.Enum, type)):
            lines.append(f"method {path}.{name}{_of(value, bound=True) or '(*args, **kwargs)'}")
        elif isinstance(value, (enum.Enum, float, *PLAIN)):
            lines.append(f"constant {path}.{name} = {written(value)}")
        else:
            lines.append(f"property {path}.{name}")
    return lines


def main(path):
    import tensorflow

    tensorflow.compat.v1.logging.set_verbosity("ERROR")
    lines = _lines(tensorflow)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"# TensorFlow {tensorflow.__version__}, {len(lines)} lines\n")
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
