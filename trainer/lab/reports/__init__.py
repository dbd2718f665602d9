"""Reports on runs and sweeps: one self-contained HTML page, and the same in Markdown."""
