"""Hook of mkdocs: formulas become MathML when the pages are built, so that they need neither script nor network.

Long dotted paths in tables may break after a dot. The script that lets search work from a file is taken from docs/assets
(iframe-worker 1.0.4, MIT), where the theme would fetch it.
"""

import html
import re
from typing import Any

from latex2mathml.converter import convert

# What pymdownx.arithmatex leaves on the page: \( ... \) within a line, \[ ... \] on lines of its own.
FORMULA = re.compile(r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL)
# A function named in a table, such as sumgp.laws.sums.SumConstraint.
PATH = re.compile(r"(?<=<code>)sumgp(?:_studies)?(?:\.\w+)+(?=</code>)")
SHIM = re.compile(r'"https://[^"]*/iframe-worker/shim"')


def as_mathml(found: re.Match[str]) -> str:
    """One formula as MathML, on a line of its own where it stood so."""
    display = "block" if found["tag"] == "div" else "inline"
    formula = convert(html.unescape(found["latex"]).strip(), display=display)
    return f'<{found["tag"]} class="formula">{formula}</{found["tag"]}>'


def on_page_content(content: str, **_: object) -> str:
    """The page with every formula replaced; mkdocs calls this with the page's HTML."""
    return PATH.sub(lambda found: found[0].replace(".", ".<wbr>"), FORMULA.sub(as_mathml, content))


def on_post_page(output: str, *, page: Any, **_: object) -> str:
    """The finished page with the search script of our own folder."""
    up = "../" * page.url.count("/")
    return SHIM.sub(f'"{up}assets/iframe-worker/shim.js"', output)


def on_post_template(output: str, **_: object) -> str:
    """The same for pages without a source, such as 404.html."""
    return SHIM.sub('"assets/iframe-worker/shim.js"', output)
