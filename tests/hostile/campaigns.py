"""All campaigns."""

from __future__ import annotations

from . import arguments, checkpoints, documents, files, folders

CAMPAIGNS = (
    *arguments.CAMPAIGNS,
    *documents.CAMPAIGNS,
    *checkpoints.campaigns(),
    *files.campaigns(),
    *folders.CAMPAIGNS,
)
