"""Saved models: folders of one or of several versions, which come and go."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import ConfigError, HeadraceError, InvalidArgumentError, NotFoundError
from headrace_serve import Application, Server
from tests.serve.serving import ask, function, half_plus_two
from tests.waiting import wait_until

pytestmark = pytest.mark.needs("backend-cpu")

LIMIT = 30.0
ONE = {"instances": [1.0]}


def export(folder: Path, factor: float) -> Path:
    """Save a model that multiplies."""
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.placeholder(hr.float32, [None], name="x")
        w = hr.Variable(hr.constant(factor))
        session.run(hr.global_variables_initializer())
        hr.saved_model.simple_save(session, str(folder), {"x": x}, {"y": x * w})
    return folder


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two versions of a model."""
    folder = tmp_path_factory.mktemp("exported") / "scale"
    export(folder / "1", 2.0)
    export(folder / "12", 3.0)
    return folder


@pytest.fixture
def folder(exported: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(exported, tmp_path / "scale"))


@pytest.fixture(scope="module")
def url(exported: Path) -> Iterator[str]:
    with Server(exported, port=0) as server:
        yield server.url


def versions(url: str) -> list[str]:
    status = ask(url, "/v1/models/scale").data["model_version_status"]
    return [version["version"] for version in status if version["state"] == "AVAILABLE"]


def wait_for(url: str, expected: list[str]) -> None:
    wait_until(lambda: versions(url) == expected, within_s=LIMIT)


def test_the_highest_version_answers_unless_another_is_named(url: str) -> None:
    assert ask(url, "/v1/models/scale:predict", ONE).data == {"predictions": [3.0]}
    assert ask(url, "/v1/models/scale/versions/12:predict", ONE).data == {"predictions": [3.0]}
    assert ask(url, "/v1/models/scale/versions/1:predict", ONE).data == {"predictions": [2.0]}
    assert versions(url) == ["12", "1"]


def test_metadata_tells_what_the_graph_has(url: str) -> None:
    data = ask(url, "/v1/models/scale/metadata").data
    assert data["model_spec"]["version"] == "12"
    signature = data["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert signature["inputs"]["x"]["name"] == "x:0"
    assert signature["method_name"] == "tensorflow/serving/predict"


def test_a_saved_model_without_versions_is_the_first(exported: Path, tmp_path: Path) -> None:
    plain = Path(shutil.copytree(exported / "1", tmp_path / "plain"))
    models: dict[str, Any] = {
        "": plain,
        "number": exported / "12",
        "loaded": hr.saved_model.Model(exported / "1"),
        "made": function(half_plus_two),
    }
    with Server(models, port=0) as server:
        found = {
            name: [version["version"] for version in answer["model_version_status"]]
            for name in ("plain", "number", "loaded", "made")
            if (answer := ask(server.url, f"/v1/models/{name}").data)
        }
        assert found == {"plain": ["1"], "number": ["12"], "loaded": ["1"], "made": ["1"]}
        for name, expected in {"plain": 2, "number": 3, "loaded": 2, "made": 2.5}.items():
            answer = ask(server.url, f"/v1/models/{name}:predict", ONE)
            assert answer.data == {"predictions": [expected]}


def test_the_folder_of_a_version_has_the_name_of_the_folder_around_it(exported: Path) -> None:
    assert list(Application(exported / "1").models) == ["scale"]
    assert list(Application(exported / "1", name="other").models) == ["other"]


def test_two_models_of_one_name_are_refused(exported: Path) -> None:
    with pytest.raises(ConfigError, match="two models are called 'scale'; name them"):
        Application({"scale": exported, "": exported})


def test_versions_come_and_go(folder: Path, exported: Path) -> None:
    shutil.rmtree(folder / "12")
    with Server(folder, port=0, poll=0.05) as server:
        assert versions(server.url) == ["1"]
        # As exporters do it: written beside, and put there whole.
        Path(shutil.copytree(exported / "12", folder / "tmp")).rename(folder / "13")
        wait_for(server.url, ["13", "1"])
        assert ask(server.url, "/v1/models/scale:predict", ONE).data == {"predictions": [3.0]}
        shutil.rmtree(folder / "1")
        wait_for(server.url, ["13"])
        assert ask(server.url, "/v1/models/scale/versions/1:predict", ONE).status == 404
        # The last ones stay, whatever becomes of the folder.
        shutil.rmtree(folder)
        time.sleep(0.2)
        assert ask(server.url, "/v1/models/scale:predict", ONE).data == {"predictions": [3.0]}


def damage(folder: Path) -> None:
    manifest = next(path for path in folder.iterdir() if path.suffix == ".json")
    manifest.write_text(manifest.read_text()[:40])


def test_a_damaged_version_is_told_and_the_others_answer(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    damage(folder / "12")
    with caplog.at_level(logging.WARNING, "headrace.serve"), Server(folder, port=0) as server:
        assert ask(server.url, "/v1/models/scale:predict", ONE).data == {"predictions": [2.0]}
        (status,) = ask(server.url, "/v1/models/scale/versions/12").data["model_version_status"]
        answer = ask(server.url, "/v1/models/scale/versions/12:predict", ONE)
    assert status["state"] == "END"
    assert status["status"]["error_code"] == "UNKNOWN"
    assert status["status"]["error_message"] in caplog.text
    assert answer.status == 404
    assert status["status"]["error_message"] in answer.error


def test_a_version_is_loaded_when_it_is_whole(folder: Path, exported: Path) -> None:
    damage(folder / "12")
    with Server(folder, port=0, poll=0.05) as server:
        assert versions(server.url) == ["1"]
        shutil.rmtree(folder / "12")
        Path(shutil.copytree(exported / "12", folder / "tmp")).rename(folder / "12")
        wait_for(server.url, ["12", "1"])


def test_models_that_cannot_be_loaded_are_refused(folder: Path) -> None:
    for number in ("1", "12"):
        damage(folder / number)
    with pytest.raises(
        InvalidArgumentError, match="no version of the model 'scale' can be loaded: "
    ):
        Application(folder)


@pytest.mark.parametrize("name", ["missing", "empty", "file"])
def test_folders_without_a_model_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(NotFoundError, match=f"{name} holds no saved model: expected one, or folde"):
        Application(tmp_path / name)


def test_a_server_that_cannot_load_gives_its_port_back(tmp_path: Path) -> None:
    with Server({"m": function(half_plus_two)}, port=0) as server:
        port = server.port
    with pytest.raises(HeadraceError, match="holds no saved model"):
        Server(tmp_path, port=port)
    Server({"m": function(half_plus_two)}, port=port).stop()


def test_what_has_no_form_in_json_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.sparse_placeholder(hr.float32, [3], name="x")
        y = hr.sparse.to_dense(x)
        hr.saved_model.simple_save(session, str(tmp_path / "m"), {"x": x}, {"y": y})
    with (
        caplog.at_level(logging.WARNING, "headrace.serve"),
        pytest.raises(InvalidArgumentError, match="the model has no signature to answer for"),
    ):
        Application(tmp_path / "m")
    assert "'serving_default' is left out: it takes or returns sparse tensors" in caplog.text


def test_the_name_of_a_folder_must_fit_addresses(exported: Path, tmp_path: Path) -> None:
    odd = Path(shutil.copytree(exported / "1", tmp_path / "50%"))
    with pytest.raises(ConfigError, match="'50%' is no name of a model"):
        Application(odd)
    assert list(Application(odd, name="half").models) == ["half"]
