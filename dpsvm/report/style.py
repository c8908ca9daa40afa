"""The look of the page."""

from __future__ import annotations

CSS = """
:root { --ink: #1b1f24; --soft: #5a6472; --line: #dfe3e8; --wash: #f6f7f9; --accent: #0072b2; }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: #fff; line-height: 1.5;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main, header > div, footer > div { max-width: 1200px; margin: 0 auto; padding: 0 28px; }
header { background: var(--wash); border-bottom: 1px solid var(--line); padding: 30px 0 24px; }
h1 { font-size: 27px; line-height: 1.25; margin: 0 0 6px; letter-spacing: -0.01em; }
header p { margin: 0; color: var(--soft); max-width: 78ch; }
h2 { font-size: 22px; margin: 40px 0 10px; padding-top: 6px; }
h3 { font-size: 16px; margin: 28px 0 8px; }
h3 small { color: var(--soft); font-weight: 400; font-size: 13.5px; margin-left: 6px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px;
  font-variant-numeric: tabular-nums; }
th, td { padding: 6px 10px; text-align: right; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; border-bottom: 2px solid #c4cad2;
  vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; white-space: nowrap; padding-left: 4px; }
tbody tr:hover { background: var(--wash); }
tr.reference td { font-weight: 600; }
.swatch { display: inline-block; width: 30px; height: 10px; margin-right: 8px; }
.swatch line { stroke-width: 3; }
.notes { margin: 18px 0 6px; padding: 12px 18px 12px 20px; background: #fff7e6;
  border-left: 4px solid #e69f00; border-radius: 3px; }
.notes strong { display: block; margin-bottom: 2px; }
.notes ul { margin: 0; padding-left: 18px; }
.pair { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 440px), 1fr));
  gap: 26px; margin: 14px 0; }
figure { margin: 0; min-width: 0; }
figcaption { font-weight: 600; margin-bottom: 4px; }
figcaption small { display: block; font-weight: 400; color: var(--soft); font-size: 13px; }
.lead { color: var(--soft); max-width: 90ch; margin: 0 0 4px; font-size: 14px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 20px; font-size: 13px; margin: 8px 0 4px; }
.legend span { white-space: nowrap; }
svg.chart { width: 100%; height: auto; display: block; font-size: 12px; }
svg .grid { stroke: #e8ebef; } svg .one { stroke: #6b7480; stroke-dasharray: 4 3; }
svg .range { stroke-width: 2.5; opacity: .45; stroke-linecap: round; }
svg .tick { fill: #5a6472; font-size: 11.5px; } svg .row { fill: #1b1f24; font-size: 12.5px; }
svg .axis { fill: #5a6472; font-size: 12.5px; } svg .up { transform: rotate(-90deg); }
svg .curve { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
svg .cross { fill: none; stroke-width: 1.2; opacity: .5; } svg .point { opacity: .45; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 22px; font-size: 13.5px; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
footer { background: var(--wash); border-top: 1px solid var(--line); margin-top: 44px;
  padding: 10px 0 24px; }
.failed { color: #a33b00; }
"""
