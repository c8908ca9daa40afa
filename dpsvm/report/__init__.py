"""Comparisons as text, JSON, CSV, figures and a self-contained HTML page."""
