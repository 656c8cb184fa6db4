"""How Sphinx builds the site from ``docs/_build/source``, which ``docs/assemble.py`` writes."""

from __future__ import annotations

import re
import warnings
from importlib.util import find_spec
from pathlib import Path

import matplotlib as mpl
from sphinx_gallery.sorting import FileNameSortKey

import limes

DOCS = Path(__file__).resolve().parent

project = "limes"
author = "the limes developers"
version = release = limes.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "**/README.txt"]
nitpicky = True
nitpick_ignore = [
    ("py:class", "collections.abc.Callable"),
    ("py:class", "limes.evaluate._task.EvaluationTask"),
]

# Markdown: anchors of headings as on GitHub. Formulas are Unicode, which needs no script.
myst_heading_anchors = 4
suppress_warnings = ["config.cache"]  # sphinx-gallery's options hold a class, which is not pickled

# Docstrings
autodoc_mock_imports = [name for name in ("dask", "distributed", "pyspark") if find_spec(name) is None]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Pages that are executed: every script of a folder, in the order of their names
sphinx_gallery_conf = {
    "examples_dirs": [str(DOCS / name) for name in ("start", "tutorials", "explained", "gallery")],
    "gallery_dirs": ["start", "tutorials", "explained", "gallery"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": FileNameSortKey,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 30,
    "remove_config_comments": True,
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r"matplotlib",  # a picture stands for itself
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": True,
    "compress_images": (),
    "image_srcset": ["2x"],
    "nested_sections": False,
}
mpl.rcParams["figure.dpi"] = 100

warnings.filterwarnings("ignore", category=DeprecationWarning, module="myst_parser")
_USUAL = [*warnings.filters]


def strict_warnings(_conf, _script, when):
    """Make warnings errors while a page runs: a user would see them."""
    warnings.filters[:] = _USUAL if when == "after" else [("error", None, Warning, None, 0)]
    warnings._filters_mutated()


sphinx_gallery_conf |= {"reset_modules": ("matplotlib", strict_warnings), "reset_modules_order": "both"}

html_theme = "pydata_sphinx_theme"
html_title = "limes"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "limes"},
    "show_prev_next": True,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": []}


def escape_bars(_app, _what, _name, _thing, _options, lines):
    """Show |β| of docstrings as it is: bars would be substitutions."""
    lines[:] = [re.sub(r"(?<![`\w])\|([^|`]+)\|(?!`)", r"\|\1\|", line) for line in lines]


def setup(app):
    """Connect what this site adds to Sphinx."""
    app.connect("autodoc-process-docstring", escape_bars, priority=900)
