"""How Sphinx builds the site from ``docs/_build/source``, which ``docs/assemble.py`` writes."""

from __future__ import annotations

import re
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import matplotlib as mpl
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sphinx.errors import ExtensionError
from sphinx_gallery.scrapers import matplotlib_scraper
from sphinx_gallery.sorting import FileNameSortKey

import limes

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS))
from links import broken_links  # beside this file

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
    ("py:mod", "limes.evaluate"),
]

# Markdown: anchors of headings as on GitHub. Formulas are Unicode, which needs no script.
myst_heading_anchors = 4
suppress_warnings = ["config.cache"]  # sphinx-gallery's options hold functions, which are not pickled

# Docstrings
autodoc_mock_imports = [name for name in ("dask", "distributed", "pyspark") if find_spec(name) is None]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Pages that are executed: every script of a folder, in the order of their names
PAGES = ("start", "questions", "guides", "explained", "gallery")
GALLERY = ("one", "many", "inputs", "rules", "trust", "pages")
sphinx_gallery_conf = {
    "examples_dirs": [str(DOCS / name) for name in PAGES],
    "gallery_dirs": [*PAGES],
    "subsection_order": lambda folder: GALLERY.index(Path(folder).name),
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
    "thumbnail_size": (780, 585),
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


def pictures(block, block_vars, conf):
    """Save the figures of a block; the first of a page once more for its tile, small and without its title."""
    from matplotlib import pyplot as plt

    paths = block_vars["image_path_iterator"]
    figures = [plt.figure(number) for number in plt.get_fignums()]
    if figures and len(paths) == 0:
        figure = figures[0]
        size, titles = figure.get_size_inches(), [t for ax in figure.axes for t in (ax.title, ax._left_title)]
        shown = [title.get_visible() for title in titles]
        for title in titles if len(figure.axes) < 2 else ():
            title.set_visible(False)
        height = size[1] if size[1] > TILE else min(size[1], 0.75 * TILE)
        figure.set_size_inches(min(size[0], TILE), height)
        figure.savefig(next(paths), dpi=150, bbox_inches="tight")
        figure.set_size_inches(size)
        for title, was in zip(titles, shown, strict=True):
            title.set_visible(was)
    return matplotlib_scraper(block, block_vars, conf)


TILE = 5.2  # inches that a tile is wide: names of columns can be read
sphinx_gallery_conf |= {"image_scrapers": (pictures,)}
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
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "gallery/index": []}


def escape_bars(_app, _what, _name, _thing, _options, lines):
    """Show |β| of docstrings as it is: bars would be substitutions."""
    lines[:] = [re.sub(r"(?<![`\w])\|([^|`]+)\|(?!`)", r"\|\1\|", line) for line in lines]


def mend_back_links(app, page, _template, context, _doctree):
    """Lead pages of source back to the names that autodoc gave: viewcode has one module a file, and we two."""
    if not page.startswith("_modules/"):
        return
    module, names = page.removeprefix("_modules/").replace("/", "."), app.env.domains["py"].objects

    def mended(match):
        parts = match[2].split(".")
        guesses = [match[2], *(".".join([module, *parts[i:]]) for i in range(1, len(parts)))]
        return match[1] + next((name for name in guesses if name in names), match[2])

    context["body"] = re.sub(r'(class="viewcode-back" href="[^"#]*#)([\w.]+)', mended, context["body"])


def write_report(app, exception):
    """Write the report that the gallery opens."""
    if exception is None and app.builder.name == "html":
        X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        patients = limes.TabularExplainer(RandomForestRegressor(50, random_state=0).fit(X, y), X)(X)
        patients.to_report(
            Path(app.outdir) / "_static" / "patients.html", title="442 patients", progress=False
        )


def check_links(app, exception):
    """Refuse a site with a link or a picture that leads nowhere."""
    if exception is None and app.builder.name == "html" and (broken := broken_links(Path(app.outdir))):
        raise ExtensionError("Links that lead nowhere:\n" + "\n".join(broken))


def setup(app):
    """Connect what this site adds to Sphinx."""
    app.connect("autodoc-process-docstring", escape_bars, priority=900)
    app.connect("html-page-context", mend_back_links)
    app.connect("build-finished", write_report)
    app.connect("build-finished", check_links)
