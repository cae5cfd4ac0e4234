"""Saving a model for serving with one call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.graph.collections import GraphKeys, get_collection
from headrace.graph.operation import Operation
from headrace.saved_model.builder import SavedModelBuilder
from headrace.saved_model.signature_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY
from headrace.saved_model.signature_def_utils import predict_signature_def
from headrace.saved_model.tag_constants import SERVING

if TYPE_CHECKING:
    from headrace.session.session import Session


def simple_save(
    session: Session,
    export_dir: str | os.PathLike[str],
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    legacy_init_op: Operation | None = None,
) -> None:
    """Save the default graph for serving, with one signature for predictions.

    Files named by the collection ``GraphKeys.ASSET_FILEPATHS`` are copied into the model, and no
    device is asked for where it is loaded.

    Args:
        session: A session in which the variables have values.
        export_dir: The folder, which must be empty or not be there yet.
        inputs: The tensors that are fed, by the names that callers use.
        outputs: The tensors that are computed, by name.
        legacy_init_op: An operation to run after loading.

    Raises:
        SavedModelError: as ``SavedModelBuilder`` does.
    """
    signature = predict_signature_def(inputs, outputs)
    builder = SavedModelBuilder(export_dir)
    builder.add_meta_graph_and_variables(
        session,
        tags=[SERVING],
        signature_def_map={DEFAULT_SERVING_SIGNATURE_DEF_KEY: signature},
        assets_collection=get_collection(GraphKeys.ASSET_FILEPATHS),
        main_op=legacy_init_op,
        clear_devices=True,
    )
    builder.save()
