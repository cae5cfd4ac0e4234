"""``python -m headrace``: the commands, with whatever is or is not installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from headrace.cli import doctor
from headrace.cli.main import main
from headrace.errors import ConfigError
from headrace.extend import OPS, GradientTable, hookimpl
from headrace.extend.settings import Setting, whole_number
from headrace.plugins import host as host_module
from headrace.plugins.host import PluginHost


class Gradients:
    @hookimpl
    def headrace_register_gradients(self, registry):
        table = GradientTable()
        table.add("Square")(lambda op, grad: [grad])
        registry.add(table)


class Ill:
    @hookimpl
    def headrace_diagnose(self):
        return {
            "title": "illness",
            "temperature": 41,
            "library": None,
            "nested": {"pulse": [1, 2]},
            "problems": [("it is too hot", "open a window")],
        }


class Dizzy:
    @hookimpl
    def headrace_diagnose(self):
        raise RuntimeError("which way is up")

    @hookimpl
    def headrace_register_kernels(self, registry):
        raise ImportError("no such module")


class Shaky:
    @hookimpl
    def headrace_register_devices(self, registry):
        registry.add("shaky", count=lambda: 1 // 0, factory=lambda name: None)


COUNT = Setting("HEADRACE_TEST_COUNT", whole_number(), 1, "devices of the kind")


class Counts:
    @hookimpl
    def headrace_register_settings(self, registry):
        registry.add(COUNT)

    @hookimpl
    def headrace_register_devices(self, registry):
        registry.add("counted", count=COUNT.read, factory=lambda name: None)


@pytest.fixture
def use(monkeypatch, fake_entry):
    """Make these the only plugins of the process."""

    def use(**plugins: object) -> None:
        entries = [fake_entry(name, plugin) for name, plugin in plugins.items()]
        monkeypatch.setattr(host_module, "_HOST", PluginHost(entries))

    return use


@pytest.fixture(autouse=True)
def bare(use, monkeypatch):
    """Start from core alone, with no variable set."""
    use()
    for name in [n for n in os.environ if n.startswith("HEADRACE_")]:
        monkeypatch.delenv(name)


def run_json(capsys, *words: str) -> tuple[int, object]:
    code = main([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


# -- doctor


def test_core_alone_is_told_what_it_lacks(capsys) -> None:
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "nothing but core is installed" in out
    assert "problem 1, devices: there is no cpu device, which every session needs" in out
    assert "  fix: pip install headrace-backend-cpu" in out


def test_a_working_backend_has_no_problems(capsys, mini) -> None:
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert out.endswith("no problems found\n")
    assert "mini  loaded (dist-mini 1.0)" in out
    assert "ghost  none: it left" in out


def test_the_report_lists_packages_and_variables(capsys, mini, monkeypatch) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", "/data")
    monkeypatch.setenv("HEADRACE_OTHERWISE", "/data")
    code, report = run_json(capsys, "doctor")
    assert code == 0
    assert report["ok"] is True
    sections = {section["title"]: section["facts"] for section in report["sections"]}
    assert sections["python"]["version"].startswith(".".join(map(str, sys.version_info[:3])))
    assert sections["packages"]["headrace-core"]
    assert set(sections["packages"]) >= {f"headrace-{part}" for part in doctor.OFFICIAL}
    assert sections["environment"]["HEADRACE_CACHE"] == "/data (headrace-core)"
    assert sections["environment"]["HEADRACE_EXECUTOR"] == "not set (headrace-core)"
    assert sections["environment"]["HEADRACE_OTHERWISE"] == "/data (nothing reads it)"


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("HEADRACE_CACHE_SIZE", "much", "HEADRACE_CACHE_SIZE must be a number of bytes"),
        ("HEADRACE_CACHE_SISE", "1GiB", "nothing reads HEADRACE_CACHE_SISE"),
    ],
)
def test_a_wrong_variable_is_a_problem(capsys, mini, monkeypatch, name, value, problem) -> None:
    monkeypatch.setenv(name, value)
    code, report = run_json(capsys, "doctor")
    assert code == 1
    assert problem in report["problems"][0]["problem"]


def test_plugins_report_facts_and_problems(capsys, use) -> None:
    use(ill=Ill())
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "illness\n  temperature  41\n  library      -\n  nested\n    pulse  1, 2\n" in out
    assert "illness: it is too hot\n  fix: open a window" in out


def test_the_doctor_outlives_all_that_is_broken(capsys, use) -> None:
    use(dizzy=Dizzy(), gone=ImportError("no libfoo.so"), shaky=Shaky())
    code, report = run_json(capsys, "doctor")
    assert code == 1
    problems = [p["problem"] for p in report["problems"]]
    assert any("headrace_diagnose failed: RuntimeError: which way is up" in p for p in problems)
    assert "plugin 'gone' is broken: ImportError: no libfoo.so" in problems
    assert any("'dizzy' is broken: headrace_register_kernels" in p for p in problems)
    shaky = "plugin 'shaky' is faulty: the count of device kind 'shaky' failed: ZeroDivisionError"
    assert any(p.startswith(shaky) for p in problems)
    fixes = [p["fix"] for p in report["problems"]]
    assert "fix or upgrade dist-gone, or set HEADRACE_DISABLE_PLUGINS=gone" in fixes


def test_packages_of_different_releases_are_a_problem(capsys, mini, monkeypatch) -> None:
    versions = {"headrace-core": "0.2.1", "headrace-train": "0.1.9", "headrace-autodiff": "0.2.0"}
    monkeypatch.setattr(doctor, "_version", versions.get)
    code, report = run_json(capsys, "doctor")
    assert code == 1
    (problem,) = report["problems"]
    assert problem["problem"].startswith("headrace-core is 0.2.1, headrace-train is 0.1.9")
    assert problem["fix"] == "pip install --upgrade headrace-core headrace-train"


# -- plugins


def test_plugins_are_listed_with_reasons(capsys, use, monkeypatch) -> None:
    monkeypatch.setenv("HEADRACE_DISABLE_PLUGINS", "ill")
    use(dizzy=Dizzy(), good=Gradients(), ill=Ill())
    assert main(["plugins"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["plugin", "state", "package", "module", "reason"]
    assert lines[1][:2] == ["dizzy", "broken"]
    assert lines[1][-5:-2] == ["no", "such", "module"]
    assert lines[2] == ["good", "loaded", "dist-good", "1.0", "good_module"]
    assert lines[3][:2] == ["ill", "disabled"]


def test_no_plugins_are_said_to_be_none(capsys) -> None:
    assert main(["plugins"]) == 0
    assert "nothing but core is installed" in capsys.readouterr().out
    assert run_json(capsys, "plugins") == (0, [])


# -- ops


def rows(capsys) -> dict[str, dict[str, object]]:
    _, found = run_json(capsys, "ops")
    return {row["function"] or row["ops"][0]: row for row in found}


def test_ops_are_listed_without_any_plugin(capsys) -> None:
    found = rows(capsys)
    assert found["hr.square"] == {
        "function": "hr.square",
        "aliases": ["hr.math.square"],
        "ops": ["Square"],
        "devices": [],
        "gradient": "none: pip install headrace-autodiff",
    }
    assert found["hr.constant"]["devices"] == ["all"]
    assert found["hr.placeholder"]["devices"] == ["fed"]
    assert found["hr.equal"]["gradient"] == "none: the result is piecewise constant"
    assert found["hr.nn.conv2d"]["ops"] == ["Conv2D"]
    assert found["hr.assign_add"]["ops"] == ["AssignAddVariable"]
    assert "hr.mod" in found["hr.floormod"]["aliases"]
    assert {"hr.tanh", "hr.cond", "hr.assert_less", "hr.strings.split", "Const"} <= set(found)
    assert not {"hr.mod", "hr.nn.tanh", "hr.string_split_v2"} & set(found)
    assert not {"hr.global_variables", "hr.set_random_seed"} & set(found)


def test_ops_tell_what_covers_them(capsys, use, mini) -> None:
    assert rows(capsys)["hr.add"]["devices"] == ["cpu", "toy"]
    # A kind of devices covers a function when it has kernels for all of its parts.
    assert rows(capsys)["hr.divide"]["devices"] == ["cpu"]
    use(grads=Gradients())
    assert rows(capsys)["hr.square"]["gradient"] == "rule"
    assert rows(capsys)["hr.add"]["gradient"] == "none: no rule is registered"


def test_the_list_of_ops_is_a_table(capsys, mini) -> None:
    assert main(["ops"]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.split() == ["function", "op", "devices", "gradient", "also", "called"]
    assert any(line.split()[:4] == ["hr.add", "Add", "cpu,", "toy"] for line in lines)


@pytest.mark.needs("backend-cpu", "autodiff")
def test_every_function_is_covered_or_says_why_not(capsys, monkeypatch) -> None:
    monkeypatch.setattr(host_module, "_HOST", PluginHost())
    _, found = run_json(capsys, "ops")
    # Other tests of this process declare ops of their own.
    found = [
        row for row in found if all(OPS[op].where.startswith("headrace.") for op in row["ops"])
    ]
    functions = [row for row in found if row["function"]]
    assert len(functions) >= 350
    names = [name for row in functions for name in (row["function"], *row["aliases"])]
    assert len(set(names)) == len(names)
    assert [row for row in found if not set(row["devices"]) & {"cpu", "all", "fed"}] == []
    odd = [r for r in found if r["gradient"] != "rule" and not r["gradient"].startswith("none: ")]
    assert odd == []
    assert [row for row in found if "no rule is registered" in row["gradient"]] == []


@pytest.mark.needs("backend-cpu", "autodiff")
@pytest.mark.parametrize(
    ("name", "gradient"),
    [
        ("hr.matmul", "rule"),
        ("hr.nn.dropout", "rule"),
        ("hr.where", "rule"),
        ("hr.while_loop", "rule"),
        ("hr.sparse_slice", "rule"),
        ("hr.argmax", "none: an index is piecewise constant"),
        ("hr.approximate_equal", "none: the result is piecewise constant"),
        ("hr.string_split", "none: strings have no gradient"),
        ("hr.assert_equal", "none: it has no outputs"),
        ("hr.zeros_like", "none: its values are constants"),
    ],
)
def test_composites_have_the_gradient_of_what_they_return(
    capsys, monkeypatch, name, gradient
) -> None:
    monkeypatch.setattr(host_module, "_HOST", PluginHost())
    assert rows(capsys)[name]["gradient"] == gradient


def test_the_list_ends_with_a_summary(capsys, mini) -> None:
    assert main(["ops"]) == 0
    summary = capsys.readouterr().out.partition("\n\n")[2].splitlines()
    assert re.fullmatch(r"\d+ functions under \d+ names, \d+ ops", summary[0])
    assert any(re.fullmatch(r"  \d+ run on cpu", line) for line in summary)
    listed = [int(line.split()[0]) for line in summary[1:] if line.startswith("    ")]
    ruled, bare = (int(line.split()[0]) for line in summary if re.match(r"  \d+ have ", line))
    assert sum(listed) == bare
    assert ruled + bare == int(summary[0].split()[0])


@pytest.mark.parametrize("name", ["Square", "square", "hr.square", "headrace.square", "SQUARE"])
def test_an_op_is_found_under_all_its_names(capsys, mini, name) -> None:
    code, about = run_json(capsys, "ops", name)
    assert code == 0
    assert about["op"] == "Square"
    assert about["function"] == "square(x, name)"
    assert about["devices"] == {"cpu": ["any"]}


def test_an_op_is_told_of_with_its_attributes(capsys, mini) -> None:
    code, about = run_json(capsys, "ops", "MatMul")
    assert code == 0
    assert about["function"] == "none: other functions make it"
    assert about["attributes"]["transpose_a"] == "bool = False"
    assert about["documentation"].startswith("Matrix product")


def test_a_function_that_is_no_op_is_told_of(capsys) -> None:
    assert main(["ops", "zeros"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("function  zeros(shape, dtype, name)\nops       ")
    assert "Fill" in out.splitlines()[1]
    assert "Make a tensor of zeros" in out


# -- mistakes


@pytest.mark.parametrize(
    ("name", "package"), [("serve", "headrace-serve"), ("checkpoint", "headrace-train")]
)
def test_the_package_of_a_command_is_named(capsys, name, package) -> None:
    assert main([name, "x"]) == 2
    expected = f"the command {name} is added by the package {package}: pip install {package}\n"
    assert capsys.readouterr().err == expected


def test_an_unknown_op_is_a_message(capsys) -> None:
    assert main(["ops", "matmull"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("no op or function is called 'matmull'; did you mean ")
    assert "matmul" in error


def test_a_wrong_environment_is_a_message(capsys, use, monkeypatch) -> None:
    use(counts=Counts())
    monkeypatch.setenv("HEADRACE_TEST_COUNT", "0")
    assert main(["plugins"]) == 2
    assert "HEADRACE_TEST_COUNT must be a whole number above 0" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["frobnicate"], ["doctor", "--yaml"]])
def test_wrong_words_give_the_usage(capsys, words) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert "usage: python -m headrace" in capsys.readouterr().err


def run_module(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headrace", *words],
        stdout=options.get("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        text=True,
        timeout=50,
        check=False,
    )


def test_the_module_runs_as_a_program() -> None:
    done = run_module("ops", "Add")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("op           Add\n")
    failed = run_module("ops", "nothing-like-it")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert "Traceback" not in failed.stderr


def test_a_reader_that_leaves_early_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    done = run_module("ops", stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


# -- commands of plugins


class Commands:
    """Adds commands, some of which do not work."""

    @hookimpl
    def headrace_register_commands(self, registry):
        registry.add("echo", f"{__name__}:echo", "print the words")
        registry.add("refuse", f"{__name__}:refuse", "refuse everything")
        registry.add("lost", f"{__name__}:lost", "is nowhere")
        registry.add("absent", "no_such_module:run", "is nowhere either")


def echo(words):
    sys.stdout.write(f"{' '.join(words)}\n")
    return 3


def refuse(words):
    raise ConfigError(f"no {words}, thank you")


def test_a_plugin_adds_a_command(capsys, use) -> None:
    use(toy=Commands())
    assert main(["echo", "a", "--json"]) == 3
    assert capsys.readouterr().out == "a --json\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["refuse", "x"], "no ['x'], thank you"),
        (["lost"], "the command 'lost' is added by plugin 'toy', in "),
        (["absent"], "in no_such_module, which fails to import: ModuleNotFoundError"),
    ],
)
def test_a_command_that_fails_is_a_message(capsys, use, words, message) -> None:
    use(toy=Commands())
    assert main(words) == 2
    assert message in capsys.readouterr().err


def test_help_lists_the_commands_of_plugins(capsys, use) -> None:
    use(toy=Commands(), sick=Dizzy())
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert "commands of plugins:\n  absent                is nowhere either\n  echo " in out


@pytest.mark.parametrize(("name", "target"), [("Loud", "a:b"), ("x", "a"), ("", "a:b")])
def test_what_is_no_command_breaks_the_plugin(capsys, use, name, target) -> None:
    class Bad:
        @hookimpl
        def headrace_register_commands(self, registry):
            registry.add(name, target, "help")

    use(bad=Bad())
    with pytest.raises(SystemExit):
        main(["whatever"])
    assert "a command is a word in small letters" in host_module.host().broken()
