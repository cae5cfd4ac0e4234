"""Write the table of what TensorFlow 1.15's ops take and return.

Run it with a Python that has TensorFlow 1.15.5, and nothing of Headrace::

    python3.7 tools/tensorflow_ops.py packages/io/src/headrace_io/raw_ops/ops.txt

A line of the table is an op, with tabs between its name, what ``tf.raw_ops`` takes for it, in
order, and its outputs. ``x:T`` is a tensor whose dtype is the attribute ``T``, ``x:int32`` one of
that dtype, ``x:N*T`` a list of ``N`` tensors, ``x:*Ts`` a list of tensors of the dtypes ``Ts``; a
``&`` in front of the dtype is a reference to a variable. ``axis/squeeze_dims@list(int)=[]`` is an
attribute: what the function calls it, what the op does where that differs, its type, and its
default in JSON. After another tab come the dtypes that attributes of tensors have by default.
"""

import inspect
import json
import re
import sys
from pathlib import Path

import numpy as np
import tensorflow
from tensorflow.python.framework import dtypes, op_def_registry, tensor_shape, tensor_util


def plain(value):
    """Return what an ``AttrValue`` holds, as JSON can write it; a dtype by its name."""
    kind = value.WhichOneof("value")
    if kind == "list":
        fields = value.list.ListFields()
        return [one(field.name, item) for field, items in fields[:1] for item in items]
    return one(kind, getattr(value, kind))


def one(kind, value):
    """Return a single value of a kind."""
    if kind == "s":
        return value.decode("latin1")
    if kind == "type":
        return dtypes.as_dtype(value).name
    if kind == "shape":
        shape = tensor_shape.TensorShape(value)
        return None if shape.ndims is None else shape.as_list()
    if kind == "tensor":
        return tensor_util.MakeNdarray(value).tolist()
    if kind == "f":
        # The shortest decimal that has the same float32: what the op's definition says.
        return float(str(np.float32(value)))
    if kind == "func":
        return value.name
    return value


def tensors(arg):
    """Return what an input or output is."""
    if arg.type_list_attr:
        return f"{arg.name}:*{arg.type_list_attr}"
    kind = arg.type_attr or dtypes.as_dtype(arg.type).name
    kind = ("&" if arg.is_ref else "") + kind
    number = arg.number_attr + "*" if arg.number_attr else ""
    return f"{arg.name}:{number}{kind}"


def renamed(name):
    """Return what the function of an op calls its inputs and attributes, by the op's names."""
    function = getattr(tensorflow.raw_ops, name)
    called = re.search(r"return (\w+)\(", inspect.getsource(function)).group(1)
    module = sys.modules[function.__module__]
    source = inspect.getsource(inspect.unwrap(getattr(module, called)))
    words = re.search(r'_apply_op_helper\(\s*"\w+",?(.*?)\)\n', source, re.DOTALL).group(1)
    pairs = re.findall(r"(\w+)=(\w+)", words)
    return dict(pairs), list(inspect.signature(function).parameters)


def line(op):
    """Return the line of an op."""
    names, order = renamed(op.name)
    inputs = {names[arg.name]: tensors(arg) for arg in op.input_arg}
    attrs = {names[attr.name]: attr for attr in op.attr if attr.name in names}
    words = []
    for name in order[:-1]:
        if name in inputs:
            own, _, kind = inputs[name].partition(":")
            words.append((name if name == own else f"{name}/{own}") + f":{kind}")
            continue
        attr = attrs[name]
        word = (name if name == attr.name else f"{name}/{attr.name}") + f"@{attr.type}"
        if attr.HasField("default_value"):
            default = json.dumps(plain(attr.default_value), separators=(",", ":"))
            word += "=" + default.replace(" ", "\\u0020")
        words.append(word)
    outputs = " ".join(tensors(arg) for arg in op.output_arg)
    defaults = " ".join(
        f"{attr.name}={plain(attr.default_value)}"
        for attr in op.attr
        if attr.name not in names and attr.type == "type" and attr.HasField("default_value")
    )
    return "\t".join((op.name, " ".join(words), outputs, defaults)).rstrip("\t")


def main(path):
    """Write the table."""
    ops = op_def_registry.get_registered_ops()
    public = [name for name in sorted(dir(tensorflow.raw_ops)) if name in ops]
    Path(path).write_text("".join(line(ops[name]) + "\n" for name in public))


if __name__ == "__main__":
    main(sys.argv[1])
