"""The report of a fit: scores, figures, wording and one HTML page."""

from sumgp.report.fit_page import PlainTable, data_facts, render_fit, score_tables
from sumgp.report.fit_study import FitStudy, as_numbers, caught, study
from sumgp.report.picture import Picture, templates, version
from sumgp.report.theme import DARK, LIGHT, Theme
from sumgp.report.wording import advice

__all__ = [
    "DARK",
    "LIGHT",
    "FitStudy",
    "Picture",
    "PlainTable",
    "Theme",
    "advice",
    "as_numbers",
    "caught",
    "data_facts",
    "render_fit",
    "score_tables",
    "study",
    "templates",
    "version",
]
