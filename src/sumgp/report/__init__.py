"""From records and fits to tables, figures and one HTML page."""

from sumgp.report.reproduction import ReportSettings, write_report

__all__ = ["ReportSettings", "write_report"]
