"""How `make docs` builds the site.

Sphinx, because it reads docstrings as this project writes them: ``#:`` comments at a constant or field, double
backticks for code, single ones for names that become links.  MyST lets it read the Markdown pages as they are, and
reports every link that leads nowhere.
"""

import importlib.metadata
import re
from typing import Any

from dedup.settings import SETTINGS

project = "Shingleback"
release = importlib.metadata.version("shingleback")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.apidoc"]
exclude_patterns = ["_build", "api/modules.rst"]
myst_heading_anchors = 3

# The reference of the Python API: a page for each module, with all in it that has a docstring or a ``#:`` comment.
apidoc_modules = [
    {
        "path": "../dedup",
        "destination": "api",
        "separate_modules": True,
        "module_first": True,
        # `dedup.scrapy` shows the function of the first name; the others can be imported with spidermon or PySpark only
        "exclude_patterns": ["**/judgement.py", "**/monitors.py", "**/spark"],
        "automodule_options": ["members"],
    }
]
default_role = "py:obj"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
suppress_warnings = ["ref.python"]  # an annotation such as ``bytes`` is also the name of some field

smartquotes = False  # a value is quoted as it is written
html_theme = "furo"
html_title = project
html_copy_source = False

_LINK = re.compile(r"\]\((?!\w+:|#)((?:\.\./)*)([^)#]+)(#[^)]*)?")
_MARKUP = re.compile(r"(``.+?``|`[^`]+`)|(\||_(?!\w))")
_PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}


def _link(link: re.Match[str], to_root: str) -> str:
    """A link to a file, as the site has it: modules lead to their page of the API reference."""
    path, anchor = link[2], link[3] or ""
    if link[1] != to_root:
        return link[0]
    top = to_root.removesuffix("../")
    if path.startswith("docs/"):
        return f"]({top}{path.removeprefix('docs/')}{anchor}"
    if path.startswith("dedup/") and path.endswith(".py"):
        return f"]({top}api/{path.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}.rst"
    if path in _PAGES:
        return f"]({top}{_PAGES[path]}{anchor}"
    if path.endswith(".md"):
        return f"](path:{top}../{path}"  # else it would be taken for a page; a file that is downloaded has no anchors
    return f"]({top}../{path}{anchor}"


def _read(app: Any, name: str, text: list[str]) -> None:
    text[0] = _LINK.sub(lambda link: _link(link, "../" * (name.count("/") + 1)), text[0])


def _include(app: Any, path: Any, name: str, text: list[str]) -> None:
    text[0] = _LINK.sub(lambda link: _link(link, ""), text[0])


def _is_elsewhere(app: Any, what: str, name: str, item: Any, skip: bool, options: Any) -> bool | None:
    """What a module takes over from another is shown there, and where people import it from."""
    page, home = app.env.docname.removeprefix("api/"), getattr(item, "__module__", None) or ""
    public = page in {"dedup", "dedup.scrapy"}
    return True if what == "module" and home.startswith("dedup") and page != home and not public else None


def _setting(app: Any, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """The attributes of groups of settings have their sentences from the table."""
    home, _, attribute = name.rpartition(".")
    if home.startswith("dedup.settings.") and (setting := SETTINGS.get(attribute)):
        lines[:] = [f"{setting.text}  Allowed: {setting.kind}."]


def _plain(app: Any, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text: ``|A|`` is the size of a set, and ``DEDUP_`` a prefix."""
    example = False
    for number, line in enumerate(lines):
        example = line.startswith((" " * 4, ">>>")) or (example and line != "")
        if not example:
            line = _MARKUP.sub(lambda found: found[1] or f"\\{found[2]}", line)
            lines[number] = re.sub(r"(?<=\w`)(?=s\b)", r"\ ", line)  # `DedupError`s


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _read)
    app.connect("include-read", _include)
    app.connect("autodoc-skip-member", _is_elsewhere)
    app.connect("autodoc-process-docstring", _setting)
    app.connect("autodoc-process-docstring", _plain)
