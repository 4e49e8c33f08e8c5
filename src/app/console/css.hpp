#pragma once

#include <string_view>

namespace tandem::app::console {

inline constexpr std::string_view kCss =
    R"page(:root { color-scheme: light dark; --line: #8885; --quiet: #666; --bad: #b00020; --accent: #0b57d0; }
@media (prefers-color-scheme: dark) { :root { --quiet: #aaa; --bad: #ff8a8a; --accent: #8ab4f8; } }
* { box-sizing: border-box; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 1240px; padding: 0 20px 40px; }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 4px 20px; border-bottom: 1px solid var(--line); margin-bottom: 12px; }
header p { margin: 0; }
h1 { font-size: 22px; margin: 14px 0 8px; }
h2 { font-size: 17px; margin: 16px 0 6px; }
h3 { font-size: 15px; margin: 18px 0 4px; }
h4 { font-size: 13px; margin: 0; width: 100%; color: var(--quiet); }
main { display: grid; grid-template-columns: minmax(0, 11fr) minmax(0, 9fr); gap: 0 36px; }
@media (max-width: 900px) { main { grid-template-columns: minmax(0, 1fr); } }
.wide { grid-column: 1 / -1; }
.quiet { color: var(--quiet); font-size: 13px; }
.hidden { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
svg { display: block; width: 100%; max-width: 520px; margin: 0 auto; touch-action: none; }
svg text { fill: currentColor; font-size: 13px; text-anchor: middle; dominant-baseline: middle; }
svg text.big { font-size: 30px; font-weight: 600; }
svg .arc { stroke: Canvas; stroke-width: 1.5; }
svg .moved { stroke: Canvas; stroke-width: 1; }
svg .handle { fill: Canvas; stroke: currentColor; stroke-width: 2; cursor: grab; }
svg .handle:focus-visible { stroke: var(--accent); stroke-width: 5; outline: none; }
svg .handle.held { cursor: grabbing; fill: var(--accent); }
table { border-collapse: collapse; width: 100%; margin: 8px 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: 4px 0; }
th, td { text-align: left; padding: 4px 10px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; font-weight: normal; overflow-wrap: break-word; }
thead th { color: var(--quiet); font-size: 13px; }
.number { text-align: right; white-space: nowrap; }
section { overflow-x: auto; min-width: 0; }
.swatch { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 7px; }
.divergence { color: var(--bad); }
.divergence.soft { color: inherit; }
[role="alert"]:not(:empty) { border: 1px solid var(--bad); color: var(--bad); border-radius: 6px; padding: 8px 12px; margin: 8px 0; overflow-wrap: anywhere; }
[role="alert"].good:not(:empty) { border-color: var(--accent); color: inherit; }
form { display: flex; flex-wrap: wrap; gap: 6px 14px; align-items: center; padding: 8px 0; border-bottom: 1px solid var(--line); }
dialog form { display: block; border: 0; }
dialog { border: 1px solid var(--line); border-radius: 8px; max-width: 560px; }
dialog::backdrop { background: #0007; }
input, select, button { font: inherit; padding: 3px 8px; max-width: 100%; }
button:focus-visible, input:focus-visible, select:focus-visible { outline: 3px solid var(--accent); outline-offset: 1px; }
#forecast { font-size: 17px; min-height: 3em; }
)page";

}  // namespace tandem::app::console
