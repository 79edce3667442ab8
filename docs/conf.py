"""Configuration of the documentation site: `sphinx-build -W docs build/docs`."""

from importlib import metadata

project = "xclass"
author = "the authors of xclass"
release = metadata.version("xclass")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_google_docstring = False
napoleon_use_ivar = True  # properties are described once

smartquotes = False  # two hyphens are the beginning of an option, not a dash

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_title = f"xclass {release}"
