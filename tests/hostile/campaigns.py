"""All campaigns."""

from __future__ import annotations

from . import checkpoints, documents, files, folders

CAMPAIGNS = (
    *documents.CAMPAIGNS,
    *checkpoints.campaigns(),
    *files.campaigns(),
    *folders.CAMPAIGNS,
)
