"""Export and serve: softmax regression on the bundled digits, saved, and asked over HTTP.

    python examples/export_and_serve.py [--folder FOLDER]

trains, saves the graph of inference with its variables, and lets a server answer for it in this
process. ``python -m headrace serve FOLDER/digits`` does the same in one of its own.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr


def export(folder: Path) -> None:
    """Train, and save two signatures: logits for programs, the likeliest digit for people."""
    digits = hr.train.datasets.load_digits(one_hot=True)
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.placeholder(hr.float32, [None, 64], name="x")
        labels = hr.placeholder(hr.float32, [None, 10])
        w = hr.Variable(hr.zeros([64, 10]))
        b = hr.Variable(hr.zeros([10]))
        logits = hr.matmul(x, w) + b
        losses = hr.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        step = hr.train.GradientDescentOptimizer(0.5).minimize(hr.reduce_mean(losses))
        digit = hr.argmax(logits, 1)
        likelihood = hr.reduce_max(hr.nn.softmax(logits), 1)

        session.run(hr.global_variables_initializer())
        for _ in range(1000):
            images, targets = digits.train.next_batch(100)
            session.run(step, {x: images, labels: targets})

        predict = hr.saved_model.predict_signature_def
        builder = hr.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(
            session,
            [hr.saved_model.SERVING],
            signature_def_map={
                "serving_default": predict(
                    {"image": x}, {"digit": digit, "likelihood": likelihood}
                ),
                "logits": predict({"image": x}, {"logits": logits}),
            },
        )
        builder.save()


def ask(url: str, request: dict[str, Any]) -> dict[str, Any]:
    """Post a request, and return what comes back."""
    body = json.dumps(request).encode()
    with urllib.request.urlopen(url, body, timeout=60) as response:
        answer: dict[str, Any] = json.load(response)
    return answer


def main() -> None:
    """Export, serve, ask."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, help="where to save; a temporary one if left out")
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        # Servers take the folders in it for versions: another number is another version.
        folder = (options.folder or Path(temporary)) / "digits"
        export(folder / "1")
        test = hr.train.datasets.load_digits(one_hot=True).test
        with hr.serve.Server(folder, port=options.port) as server:
            url = f"{server.url}/v1/models/digits:predict"
            first = ask(url, {"instances": test.images[:3].tolist()})["predictions"]
            print("three digits:", [(row["digit"], round(row["likelihood"], 2)) for row in first])
            columns = {"signature_name": "logits", "inputs": test.images.tolist()}
            found = np.argmax(ask(url, columns)["outputs"], axis=1)
    print(
        f"accuracy {np.mean(found == np.argmax(test.labels, axis=1)):.2f} of {len(found)} answers"
    )


if __name__ == "__main__":
    main()
