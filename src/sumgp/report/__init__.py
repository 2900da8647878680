"""From records and fits to tables, figures and one HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sumgp.report.reproduction import ReportSettings, write_report

__all__ = ["ReportSettings", "write_report"]


def __getattr__(name: str) -> Any:
    # The report of a fit needs none of the experiments, which take a second to import.
    if name in __all__:
        from sumgp.report import reproduction

        return getattr(reproduction, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
