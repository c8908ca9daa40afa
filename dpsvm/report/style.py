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
h2 { font-size: 22px; margin: 40px 0 10px; padding-top: 6px; overflow-wrap: anywhere; }
nav { margin: 22px 0 0; font-size: 14px; } nav ul { margin: 0; padding: 0; list-style: none; }
nav li { display: flex; flex-wrap: wrap; gap: 2px 16px; padding: 5px 0; overflow-wrap: anywhere; }
nav li > a { font-weight: 600; min-width: 15em; } nav span { display: flex; flex-wrap: wrap;
  gap: 2px 16px; } a { color: var(--accent); } a:not(:hover) { text-decoration: none; }
.up { font-size: 13px; font-weight: 400; margin-left: 10px; }
h3 { font-size: 16px; margin: 28px 0 8px; }
h3 small { color: var(--soft); font-weight: 400; font-size: 13.5px; margin-left: 6px; }
.wide { overflow-x: auto;
  background: linear-gradient(to left, #fff 24px, #fff0 48px) 100% 0 / 48px 100% no-repeat local,
    linear-gradient(to left, #1b1f2433, #1b1f2400) 100% 0 / 14px 100% no-repeat scroll; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px;
  font-variant-numeric: tabular-nums; }
th, td { padding: 6px 10px; text-align: right; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; border-bottom: 2px solid #c4cad2;
  vertical-align: bottom; }
td { white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 4px; position: sticky; left: 0;
  background: #fff; }
tr.reference td { font-weight: 600; }
.swatch { display: inline-block; width: 36px; height: 10px; margin-right: 8px; flex: none; }
.swatch line { stroke-width: 3; }
.notes { margin: 18px 0 6px; padding: 12px 18px 12px 20px; background: #fff7e6;
  border-left: 4px solid #e69f00; border-radius: 3px; }
.notes strong { display: block; margin-bottom: 2px; }
.notes ul { margin: 0; padding-left: 18px; }
.pair { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 26px;
  margin: 14px 0; }
figure { margin: 0; min-width: 0; }
figcaption { font-weight: 600; margin-bottom: 4px; }
figcaption small { display: block; font-weight: 400; color: var(--soft); font-size: 13px; }
.lead { color: var(--soft); max-width: 90ch; margin: 0 0 4px; font-size: 14px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 20px; font-size: 13px; margin: 8px 0 4px; }
svg.chart { width: 100%; max-width: 560px; height: auto; display: block;
  font-family: "DejaVu Sans", Verdana, sans-serif; }
svg.chart * { stroke-linejoin: round; stroke-linecap: butt; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 22px; font-size: 13.5px; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
footer { background: var(--wash); border-top: 1px solid var(--line); margin-top: 44px;
  padding: 10px 0 24px; }
.failed { color: #a33b00; }
@media (max-width: 640px) {
  main, header > div, footer > div { padding: 0 16px; }
  .pair { grid-template-columns: minmax(0, 1fr); }
  th, td { padding: 6px 8px; }
  td:first-child { white-space: normal; width: 150px; min-width: 150px; }
  td:first-child svg { display: block; }
  dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: 8px; }
}
"""
