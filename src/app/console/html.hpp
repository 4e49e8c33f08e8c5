#pragma once

#include <string_view>

namespace tandem::app::console {

inline constexpr std::string_view kHtml = R"page(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tandem map console</title>
<link rel="stylesheet" href="console.css">
<script src="ring.js" defer></script>
<script src="console.js" defer></script>
</head>
<body>
<header>
  <h1>Tandem map</h1>
  <p id="published">loading</p>
  <p id="store" class="quiet"></p>
</header>
<div id="alert" role="alert"></div>
<main>
  <section aria-labelledby="ring-title" class="ring">
    <h2 id="ring-title">The ring</h2>
    <svg id="ring" viewBox="0 0 520 520" role="group" aria-label="The ring of 65536 buckets; every boundary is a slider"></svg>
    <p class="quiet">Drag a boundary, or focus it and press the arrow keys (64 buckets; with Shift 1; Page Up and Down 1024), then Enter.</p>
    <table>
      <caption>Hosts, desired beside observed</caption>
      <thead><tr><th scope="col">Host</th><th scope="col" class="number">Buckets</th><th scope="col" class="number">Arcs</th><th scope="col">Observed</th><th scope="col">Divergence</th></tr></thead>
      <tbody id="hosts"></tbody>
    </table>
    <ul id="warnings"></ul>
  </section>

  <section aria-labelledby="draft-title">
    <h2 id="draft-title">Draft</h2>
    <p id="forecast" role="status" aria-live="polite">No draft: the ring shows what is published.</p>
    <ol id="edits"></ol>
    <table id="moves-table" hidden>
      <caption>What the draft moves</caption>
      <thead><tr><th scope="col">Buckets</th><th scope="col" class="number">Count</th><th scope="col">From</th><th scope="col">To</th></tr></thead>
      <tbody id="moves"></tbody>
    </table>
    <p>
      <button id="undo" type="button" disabled>Undo last edit</button>
      <button id="discard" type="button" disabled>Discard draft</button>
      <button id="review" type="button" disabled>Review and publish</button>
    </p>

    <h3>Edit by typing</h3>
    <form id="add" autocomplete="off">
      <h4>Add a host</h4>
      <label>Host <input name="host" required size="28" placeholder="relay4.example.com"></label>
      <label>At boundary <input name="at" inputmode="numeric" pattern="[0-9]*" size="6"></label>
      <label>Buckets <input name="buckets" inputmode="numeric" pattern="[0-9]*" size="6"></label>
      <button>Add to draft</button>
    </form>
    <form id="move" autocomplete="off">
      <h4>Move a range</h4>
      <label>Low <input name="low" required inputmode="numeric" pattern="[0-9]+" size="6"></label>
      <label>High <input name="high" required inputmode="numeric" pattern="[0-9]+" size="6"></label>
      <label>To <input name="host" required size="28" list="known-hosts"></label>
      <label><input name="new" type="checkbox"> a new host</label>
      <button>Add to draft</button>
    </form>
    <form id="remove" autocomplete="off">
      <h4>Remove a host</h4>
      <label>Host <select name="host" required></select></label>
      <label>Into <select name="into"></select></label>
      <button>Add to draft</button>
    </form>
    <form id="rebalance"><h4>Rebalance</h4><button>Equal arcs for every host</button></form>
    <datalist id="known-hosts"></datalist>
  </section>

  <section aria-labelledby="history-title" class="wide">
    <h2 id="history-title">History</h2>
    <table>
      <thead><tr><th scope="col" class="number">Version</th><th scope="col">When</th><th scope="col">Who</th><th scope="col">What</th><th scope="col" class="number">Buckets</th><th scope="col">Message</th><th scope="col"><span class="hidden">Actions</span></th></tr></thead>
      <tbody id="history"></tbody>
    </table>
    <div id="diff" role="status" aria-live="polite"></div>
  </section>
</main>

<dialog id="confirm" aria-labelledby="confirm-title">
  <form method="dialog">
    <h2 id="confirm-title">Publish?</h2>
    <p id="confirm-text"></p>
    <p><label>Message for the history <input id="message" size="40"></label></p>
    <p><label><input id="two-phase" type="checkbox"> In two phases: nobody owns the moved buckets until every host has let go</label></p>
    <p><button value="cancel" id="cancel">Cancel</button> <button value="publish" id="publish">Publish</button></p>
  </form>
</dialog>
</body>
</html>
)page";

}  // namespace tandem::app::console
