"""Reports on runs and sweeps: one self-contained HTML page, and the same in Markdown."""

from evenkeel.trainer.lab.reports.contents import Report, report_on
from evenkeel.trainer.lab.reports.page import html_page, markdown_page, print_report, write_report

__all__ = ["Report", "html_page", "markdown_page", "print_report", "report_on", "write_report"]
