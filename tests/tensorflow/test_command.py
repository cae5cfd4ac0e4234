"""``python -m headrace tensorflow``: programs and libraries as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.cli.main import main
from tests.children import run_python
from tests.tensorflow.standing_in import printed, run

pytestmark = pytest.mark.needs("backend-cpu")

FLAGS = """
    import tensorflow as tf

    tf.app.flags.DEFINE_integer("steps", 3, "How many.")
    tf.flags.DEFINE_bool("fast", False, "Whether.")
    FLAGS = tf.flags.FLAGS

    def main(words):
        total = tf.add_n([tf.constant(i) for i in range(FLAGS.steps)])
        with tf.Session() as session:
            print(session.run(total), FLAGS.fast, words[1:])

    if __name__ == "__main__":
        tf.app.run()
"""


@pytest.mark.parametrize("installing", [False, True])
def test_a_program_with_flags_runs(tmp_path: Path, installing: bool) -> None:
    lines = printed(tmp_path, FLAGS, "--steps", "5", "--fast", "word", installing=installing)
    assert lines == ["10 True ['word']"]


def test_modules_beside_the_program_are_found(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "from tensorflow.python.framework import ops\n"
        "from tensorflow.python.ops import array_ops, math_ops\n"
        "def double(x):\n"
        "    with ops.name_scope('double'):\n"
        "        return math_ops.add(array_ops.identity(x), x)\n"
    )
    program = """
        import model
        import tensorflow as tf

        y = model.double(tf.constant([1.0, 2.0]))
        with tf.Session():
            print(y.name, y.eval())
    """
    assert printed(tmp_path, program) == ["double/Add:0 [2. 4.]"]


def test_a_module_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "counted.py").write_text(
        "import sys, tensorflow as tf\nprint(__name__, sys.argv[1:], tf.__version__)\n"
    )
    monkeypatch.chdir(tmp_path)
    done = run_python("-m", "headrace", "tensorflow", "-m", "counted", "-q", "--all")
    assert done.stdout == "__main__ ['-q', '--all'] 1.15.5\n", done.stderr


def test_exit_codes_are_the_programs(tmp_path: Path) -> None:
    assert run(tmp_path, "import sys, tensorflow\nsys.exit(7)").returncode == 7
    failed = run(tmp_path, "import tensorflow as tf\ntf.matmul([[1.0]], [[1.0], [2.0]])")
    assert failed.returncode == 1
    assert "program.py" in failed.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name a program"),
        (["-m"], "name a program"),
        (["--fast"], "name a program"),
        (["nowhere.py"], "there is no program nowhere.py"),
    ],
)
def test_what_cannot_be_run_is_told(
    capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["tensorflow", *words]) == 2
    assert message in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tensorflow", "--help"]) == 0
    assert "python -m headrace tensorflow program.py" in capsys.readouterr().out
