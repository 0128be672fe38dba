"""How `make docs` builds the site.

Sphinx, because it reads docstrings as this project writes them: `#:` comments above or behind a constant or field,
double backticks for code and single ones for names that become links.  MyST lets it read the Markdown pages as they
are, and reports every link that leads nowhere.
"""

import importlib.metadata

project = "Shingleback"
author = "the authors of Shingleback"
release = importlib.metadata.version("shingleback")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.apidoc"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3

# The API reference: one page for each module, from the docstrings of what its `__all__` names.
apidoc_modules = [
    {
        "path": "../dedup",
        "destination": "api",
        "separate_modules": True,
        "module_first": True,
        "automodule_options": {"members", "show-inheritance"},
    }
]
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "Shingleback"
html_copy_source = False
