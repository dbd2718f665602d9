"""Reports on runs and sweeps: one self-contained HTML page, and the same in Markdown."""

from trainer.comparison.reports.contents import Report, report_on
from trainer.comparison.reports.page import html_page, markdown_page, print_report, write_report
from trainer.comparison.reports.run_files import ReportError

__all__ = ["Report", "ReportError", "html_page", "markdown_page", "print_report", "report_on", "write_report"]
