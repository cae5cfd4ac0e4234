"""Saved models that TensorFlow 1.15 wrote answer here what they answer there."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import SavedModelDamagedError, SavedModelTagsError

pytestmark = pytest.mark.needs("backend-cpu")
ARCHIVE = Path(__file__).with_name("saved_models.zip")


@pytest.fixture
def models(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """Return the folder of the models, and what they answer."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(tmp_path)
    return tmp_path, json.loads((tmp_path / "answers.json").read_text())


@pytest.mark.parametrize("name", ["table", "simple", "resource"])
def test_a_model_answers_the_same(name: str, models: tuple[Path, dict[str, Any]]) -> None:
    folder, answers = models
    with hr.saved_model.Model(folder / name) as model:
        found = model.signatures["serving_default"](answers[name]["inputs"])
    assert found.keys() == answers[name]["outputs"].keys()
    for key, expected in answers[name]["outputs"].items():
        np.testing.assert_allclose(found[key], expected, rtol=1e-5)


def test_a_model_is_loaded_into_a_session(models: tuple[Path, dict[str, Any]]) -> None:
    folder, answers = models
    with hr.Graph().as_default(), hr.Session() as session:
        loaded = hr.saved_model.load(session, ["serve"], folder / "table", import_scope="m")
        assert loaded.signature_def["serving_default"].inputs["words"].name == "words:0"
        assert list(loaded.assets.values()) == ["words.txt"]
        feed = np.array(answers["table"]["inputs"]["words"], object)
        found = session.run("m/out:0", {"m/words:0": feed})
    np.testing.assert_allclose(found, answers["table"]["outputs"]["out"])


def test_what_is_wrong_with_a_model_is_told(models: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = models
    with pytest.raises(SavedModelTagsError, match=r"no graph with the tags \['other'\]"):
        hr.saved_model.Model(folder / "table", ["other"])
    (folder / "table" / "assets" / "words.txt").unlink()
    with pytest.raises(SavedModelDamagedError, match=r"has no asset 'words.txt'"):
        hr.saved_model.Model(folder / "table")
    path = folder / "simple" / "saved_model.pb"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(SavedModelDamagedError, match=r"saved_model.pb"):
        hr.saved_model.Model(folder / "simple")
    path.write_bytes(b"")
    with pytest.raises(SavedModelDamagedError, match="is of version 0 with 0 graphs"):
        hr.saved_model.Model(folder / "simple")


def test_a_model_is_served(models: tuple[Path, dict[str, Any]]) -> None:
    loading = pytest.importorskip("headrace_serve.models.loading")
    folder, answers = models
    served = loading.load(folder / "simple")
    try:
        signature = served.signatures["serving_default"]
        x = np.array(answers["simple"]["inputs"]["x"], np.float32)
        found = signature.call({"x": x})
    finally:
        served.close()
    np.testing.assert_allclose(found["y"], answers["simple"]["outputs"]["y"], rtol=1e-5)
