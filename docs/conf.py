"""How Sphinx builds the site: `bash ci/docs`.

Pages are Markdown (MyST). Guides (`guides/`) and the pages on how the package works (`how/`) are
Python files, which sphinx-gallery runs during the build, so their outputs and pictures are current.
The reference comes from the docstrings (numpydoc).
"""

from __future__ import annotations

import warnings

from sphinx.application import Sphinx

import gpustump

project = "gpustump"
author = "The gpustump developers"
copyright = f"2026, {author}"
version = release = gpustump.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = [
    "guides/*",
    "how/*",
    "_templates/*",
    "**sg_execution_times.rst",
]
default_role = "code"  # `x` is code in Python files, too, as it is in Markdown
nitpicky = True  # a reference that leads nowhere is a warning, and a warning ends the build
nitpick_ignore_regex = [
    ("py:obj", r"\w+_")
]  # fitted attributes: the docstring itself explains them
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
smartquotes = False  # "stump" is what a reader types
suppress_warnings = ["config.cache"]  # the gallery's settings hold functions

# The reference.
autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # numpydoc's sections have them in words
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# The guides.
ORDER = (
    "from_adaboost",
    "from_ebm",
    "from_xgboost",
    "quantities",
    "counts_and_costs",
    "votes_and_losses",
    "probabilities",
    "missing_values_and_categories",
    "words",
    "shape_functions",
    "theory",
    "reproducible_models",
    "larger_than_memory",
    "gpus",
    "many_machines",
    "backends",
    "exactness",
    "histograms",
    "the_rooms",
    "an_engine",
)


class InOrder:
    """Sorts the pages of a gallery as they are to be read."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, file: str) -> int:
        return ORDER.index(file.removesuffix(".py"))


sphinx_gallery_conf = {
    "examples_dirs": ["guides", "how"],
    "gallery_dirs": ["auto/guides", "auto/how"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": InOrder,
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1e6,  # no times: the machine may be busy
    "show_signature": False,
    "abort_on_example_error": True,
    "plot_gallery": True,
    "parallel": 2,  # processes
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "capture_repr": ("_repr_html_", "__str__"),
    "copyfile_regex": r".*\.rst",
}
warnings.filterwarnings(
    "ignore", message=".*Agg.*", category=UserWarning
)  # plt.show() draws nothing

ELSEWHERE = {
    "../bench/NOTES.md": "notes.md",
    "../bench/results/report.md": "benchmarks.md",
}
"""Files beside this folder that pages link to, and the pages here that hold them."""


def lead_to_pages(app: Sphinx, page: str, source: list[str]) -> None:
    """Make links to files beside this folder lead to their pages."""
    for file, there in ELSEWHERE.items():
        source[0] = source[0].replace(f"]({file}", f"]({there}")


def setup(app: Sphinx) -> None:
    app.connect("source-read", lead_to_pages)


# The pages.
html_theme = "pydata_sphinx_theme"
html_title = f"gpustump {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_sidebars: dict[str, list[str]] = {
    page: [] for page in ("index", "start", "benchmarks")
}  # they have no sub-pages
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
}
