"""Write the table of what TensorFlow 1.15's private modules call its public names.

Run it with a Python that has TensorFlow 1.15.5, and nothing of Headrace::

    python3.7 tools/tensorflow_names.py packages/tensorflow/src/headrace_tensorflow/names.txt

A line of the table is a module below ``tensorflow.python``, or ``contrib.`` and one of ``contrib``,
a colon, and names in it that are public: under the same name, or, as ``name=public.name``, under
another. A private function that is another one than the public one of that name in version 1, as
those of version 2 are, is followed by what it takes, in order: ``dropout_v2=nn.dropout(x,rate)``.
Private modules without such names are there as well, as libraries import modules that they may not
come to need.
"""

import inspect
import sys
import types
from pathlib import Path

# What Headrace has nothing of, and generated wrappers of single operations.
LEFT_OUT = (
    "autograph", "compiler", "debug", "distribute", "estimator", "feature_column", "keras",
    "module", "ops.gen_", "tools", "tpu",
)  # fmt: skip
# The same in contrib, and modules that have public names by chance only.
LEFT_OUT_OF_CONTRIB = (
    "autograph", "cluster_resolver", "distribute", "eager", "opt", "quantization", "rpc", "summary",
    "tpu",
)  # fmt: skip
PREFIX = "tensorflow.python."
# Functions of version 2 that do something else than those of version 1 with the same arguments:
# other places of rows and pixels, other draws and regions, ragged tensors for sparse ones.
OTHERS = (
    "embedding_lookup_v2", "fractional_avg_pool_v2", "fractional_max_pool_v2", "nce_loss_v2",
    "resize_images_v2", "sample_distorted_bounding_box_v2", "sampled_softmax_loss_v2",
    "string_split_v2",
)  # fmt: skip


def public_names(value):
    """Return the public names of something, those of version 1 if it has some."""
    from tensorflow.python.util import tf_decorator

    for found in (value, tf_decorator.unwrap(value)[1] if callable(value) else value):
        own = getattr(found, "__dict__", {})
        for key in ("_tf_api_names_v1", "_tf_api_names"):
            if own.get(key):
                return list(own[key])
    return []


def constants(module):
    """Return the public names of a module's constants, by their own."""
    return {name: list(public) for public, name in getattr(module, "_tf_api_constants_v1", [])}


def preferred(name, public):
    """Choose the public name that is nearest to a private one, of those that Headrace may have."""
    absent = ("raw_ops.", "compat.", "distribute.")
    public = [path for path in public if not path.startswith(absent)]
    return min(public, key=lambda path: (path != name, path.count("."), path), default=None)


def names_of(module):
    """Return ``{name: public name}`` of a module, without what it only imports from public ones."""
    found = {name: preferred(name, public) for name, public in constants(module).items()}
    for name in dir(module):
        value = getattr(module, name)
        if not isinstance(value, types.ModuleType):
            found.setdefault(name, preferred(name, public_names(value)))
    taken = {name: path and taken_as(module, name, path) for name, path in found.items()}
    return {name: path for name, path in taken.items() if path}


def taken_as(module, name, path):
    """Return a public name, with what a function takes that is another one; None if it differs."""
    from tensorflow.compat import v1
    from tensorflow.python.util import tf_decorator

    own, inside = getattr(module, name), v1
    for part in path.split(".")[:-1]:
        inside = getattr(inside, part, None)
    if name.endswith("_v2") and hasattr(inside, name):
        # Version 1 may have both of them.
        path = ".".join([*path.split(".")[:-1], name])
    public = getattr(inside, path.rpartition(".")[2], None)
    if not callable(own) or public is None:
        return path
    own, public = (tf_decorator.unwrap(value)[1] for value in (own, public))
    if own is public or not (inspect.isfunction(own) and inspect.isfunction(public)):
        return path
    ours, theirs = inspect.signature(own).parameters, inspect.signature(public).parameters
    needed = {word for word in ours if ours[word].default is inspect.Parameter.empty}
    if name in OTHERS or not needed <= set(theirs):
        return None
    changed = [
        word
        for word in ours
        if word in theirs
        and ours[word].default not in (None, inspect.Parameter.empty, theirs[word].default)
        and theirs[word].default is not None
    ]
    if changed:
        return None
    # What only lacks arguments at the end takes the same ones.
    same = list(ours) == list(theirs)[: len(ours)]
    return path if same else path + "(" + ",".join(ours) + ")"


def table():
    """Return the lines of the table."""
    import tensorflow  # noqa: F401 - loads the modules

    loaded = dict(sys.modules)
    lines = []
    for full in sorted(loaded):
        name = full.replace("tensorflow_core.", "tensorflow.")
        if not name.startswith(PREFIX) or name[len(PREFIX) :].startswith(LEFT_OUT):
            continue
        if isinstance(loaded[full], types.ModuleType):
            lines.append(line(name[len(PREFIX) :], names_of(loaded[full])))
    return sorted({*lines, *contrib()})


def line(name, found):
    """Return a line of the table."""
    words = [n if n == path else n + "=" + path for n, path in sorted(found.items())]
    return (name + ": " + " ".join(words)).strip()


def contrib():
    """Yield the lines of the modules of contrib that have public names."""
    from tensorflow import contrib as package

    for name in dir(package):
        module = getattr(package, name)
        known = isinstance(module, types.ModuleType) and ".contrib." in module.__name__
        if known and name not in LEFT_OUT_OF_CONTRIB:
            found = names_of(module)
            if found:
                yield line("contrib." + name, found)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("\n".join(table()) + "\n", encoding="utf-8")
