// The status page's style and script. Both are allowed by their hashes, so the page has no style attributes.
#pragma once

#include <string_view>

namespace tandem::admin {

inline constexpr std::string_view kPageStyle = R"css(
:root{color-scheme:light dark;--back:#f6f7f9;--card:#fff;--ink:#16191d;--soft:#5b6470;--line:#dfe3e8;--good:#0b7a4b;--warn:#9a5b00;--bad:#b3261e;
--h0:#1f6feb;--h1:#e8710a;--h2:#0a8f6c;--h3:#a142c9;--h4:#c2185b;--h5:#00838f;--h6:#8d6e00;--h7:#5d6b7a;--none:#c3c9d1}
@media(prefers-color-scheme:dark){:root{--back:#101317;--card:#191d23;--ink:#e8ebef;--soft:#a2abb6;--line:#2b313a;--good:#4cc38a;--warn:#f0b352;--bad:#ff8a80;
--h0:#6ea8ff;--h1:#ffa657;--h2:#56d4a8;--h3:#d29bf0;--h4:#ff85ad;--h5:#5cd0dc;--h6:#dcbf55;--h7:#a9b6c4;--none:#454d58}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:16px/1.45 system-ui,sans-serif}
header,main,footer{max-width:70rem;margin:0 auto;padding:0 1rem}
header{padding-top:1.2rem}
h1{font-size:1.35rem;margin:0;overflow-wrap:anywhere}
h2{font-size:.95rem;margin:0 0 .6rem;color:var(--soft);font-weight:600}
.state{display:inline-block;margin:.5rem 0;padding:.2rem .7rem;border-radius:1rem;border:2px solid currentColor;font-weight:600}
.good{color:var(--good)}.warn{color:var(--warn)}.bad{color:var(--bad)}
.soft{color:var(--soft)}
main{display:grid;align-items:start;grid-template-columns:repeat(auto-fit,minmax(17rem,1fr));gap:1rem;margin-top:.6rem}
section{background:var(--card);border:1px solid var(--line);border-radius:.7rem;padding:1rem;min-width:0}
.wide{grid-column:1/-1}
.big{font-size:1.7rem;font-weight:650;font-variant-numeric:tabular-nums;line-height:1.2;margin:.2rem 0 .6rem}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .3rem;text-align:right;border-top:1px solid var(--line)}
th:first-child,td:first-child{text-align:left;overflow-wrap:anywhere}
td{white-space:nowrap}
thead th{border-top:0;color:var(--soft);font-weight:500;font-size:.85rem}
tbody th{font-weight:400}
.ring{display:flex;flex-wrap:wrap;gap:1rem;align-items:center}
.ring>svg{flex:0 1 15rem;width:15rem;max-width:100%;height:auto}
.ring>div{flex:1 1 15rem;min-width:0}
.arc{fill:none;stroke-width:24}
.h0{stroke:var(--h0);fill:var(--h0)}.h1{stroke:var(--h1);fill:var(--h1)}.h2{stroke:var(--h2);fill:var(--h2)}.h3{stroke:var(--h3);fill:var(--h3)}
.h4{stroke:var(--h4);fill:var(--h4)}.h5{stroke:var(--h5);fill:var(--h5)}.h6{stroke:var(--h6);fill:var(--h6)}.h7{stroke:var(--h7);fill:var(--h7)}
.none{stroke:var(--none);fill:var(--none)}
.arc.h0,.arc.h1,.arc.h2,.arc.h3,.arc.h4,.arc.h5,.arc.h6,.arc.h7,.arc.none{fill:none}
.centre{fill:var(--ink);stroke:none;font-size:22px;font-weight:650;text-anchor:middle}
.under{fill:var(--soft);stroke:none;font-size:10px;text-anchor:middle}
.tick{stroke:var(--soft);stroke-width:1}
.swatch{width:.8rem;height:.8rem;margin-right:.4rem;vertical-align:-.05rem}
.spark{width:100%;height:5rem;display:block;margin-top:.5rem}
.spark path{fill:var(--h0);fill-opacity:.16;stroke:var(--h0);stroke-width:2;vector-effect:non-scaling-stroke}
.spark line{stroke:var(--line);vector-effect:non-scaling-stroke}
progress{width:100%;height:1rem;accent-color:var(--h0)}
footer{padding-top:1rem;padding-bottom:2rem;color:var(--soft);font-size:.9rem}
a{color:inherit}
)css";

// Fetches the page again and swaps in what changed; the server alone knows how to draw it.
inline constexpr std::string_view kPageScript = R"js(
(() => {
  const note = document.getElementById('link');
  let failed = 0;
  async function look() {
    try {
      const answer = await fetch('/', {cache: 'no-store', signal: AbortSignal.timeout(5000)});
      if (!answer.ok) throw new Error(answer.status);
      const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
      for (const part of document.querySelectorAll('[data-live]')) {
        const now = fresh.getElementById(part.id);
        if (now && now.outerHTML !== part.outerHTML) { part.className = now.className; part.innerHTML = now.innerHTML; }
      }
      document.title = fresh.title;
      if (failed) note.textContent = '';
      failed = 0;
    } catch {
      if (++failed === 2) note.textContent = 'The relay does not answer since ' + new Date().toLocaleTimeString() + '. What you see is old.';
    }
    setTimeout(look, document.hidden ? 15000 : 2000);
  }
  setTimeout(look, 2000);
})();
)js";

}  // namespace tandem::admin
