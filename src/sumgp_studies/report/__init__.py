"""Tables, figures and the page of the paper's experiments."""

from sumgp_studies.report.reproduction import ReportSettings, write_report
