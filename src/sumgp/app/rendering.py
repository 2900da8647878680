"""Pages from templates: all text is escaped, a misspelt name is an error."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from sumgp.report import DRAWING, PLOTTING

# Address -> file of the package, and its kind; nothing else is served.
STATIC = {
    "look.css": ("sumgp.report", "look.css", "text/css"),
    "fit.css": ("sumgp.report", "fit.css", "text/css"),
    "app.css": ("sumgp.app", "static/app.css", "text/css"),
    "icon.svg": ("sumgp.app", "static/icon.svg", "image/svg+xml"),
    "plotly.js": ("sumgp.report", PLOTTING, "text/javascript"),
    "figures.js": ("sumgp.report", DRAWING, "text/javascript"),
    "start.js": ("sumgp.app", "static/start.js", "text/javascript"),
    "law.js": ("sumgp.app", "static/law.js", "text/javascript"),
    "progress.js": ("sumgp.app", "static/progress.js", "text/javascript"),
    "values.js": ("sumgp.app", "static/values.js", "text/javascript"),
}


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("sumgp.app", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def rendered(template: str, **contents: Any) -> str:
    """The page or part of one."""
    return _templates().get_template(f"{template}.html.j2").render(**contents)


@cache
def static_file(name: str) -> tuple[bytes, str]:
    """Content and kind of a file; KeyError for names that are not in the list."""
    package, path, kind = STATIC[name]
    return resources.files(package).joinpath(path).read_bytes(), kind
