"""The report of a fit: scores, figures, wording and one HTML page."""

from sumgp.report.drawing import DARK, LIGHT, Theme, drawing_with
from sumgp.report.fit_page import DRAWING, PLOTTING, PlainTable, data_facts, render_fit, render_fit_body, score_tables
from sumgp.report.fit_study import FitStudy, as_numbers, caught, study
from sumgp.report.interactive import Picture, templates, version
from sumgp.report.wording import advice, verdict
