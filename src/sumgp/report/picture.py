"""What every page is made of: figures inside the page itself, templates that escape all text, versions."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from importlib import metadata

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from sumgp.report.interactive import Interactive


@dataclass(frozen=True)
class Picture:
    """A figure in both themes as SVG, or the reason why there is none.

    ``interactive`` is what the page's script draws in its place, where there is a script.
    """

    name: str
    experiment: str
    caption: str
    light: bytes = b""
    dark: bytes = b""
    trouble: str = ""
    interactive: Interactive | None = None


def templates(package: str = "sumgp.report") -> Environment:
    """The templates of a package, and those next to this file; text is escaped, a misspelt name is an error."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package, "."), PackageLoader("sumgp.report", ".")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["data_uri"] = data_uri
    environment.filters["whole"] = whole
    return environment


def data_uri(svg: bytes) -> str:
    """The image inside the page itself."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")


def whole(text: str) -> str:
    """The text with each per cent sign kept on the line of its number."""
    return text.replace(" %", "\u00a0%")


def version(name: str) -> str:
    """Version of an installed package."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
