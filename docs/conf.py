"""Sphinx configuration of the Headrace documentation."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "Headrace"
author = "The Headrace authors"
project_copyright = "The Headrace authors"
release = installed_version("headrace-core")
version = ".".join(release.split(".")[:2])

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "headrace_docs",
    "headrace_pictures",
]
exclude_patterns = ["_build", "_generated"]
nitpicky = False
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
# Fields that are described where their class is are not described again as members.
napoleon_use_ivar = True
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
smartquotes_action = "D"  # dashes only: quotes and dots are code here

html_theme = "furo"
html_title = f"Headrace {release}"
html_static_path = ["_static"]
html_css_files = ["headrace.css"]
html_theme_options = {"navigation_with_keys": True}
