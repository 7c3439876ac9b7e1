// Shows the events that the server sends, and updates the filter.
"use strict";
const live = document.getElementById("live");
const state = document.getElementById("state");
let stream;
let pressed = false; // a click needs its press and its release on the same link

function open() {
  if (stream) stream.close();
  stream = new EventSource("events" + location.search);
  stream.onmessage = (event) => {
    if (pressed || String(getSelection())) return; // do not replace a link or a text during a click or a selection
    const focused = live.contains(document.activeElement) && document.activeElement.getAttribute("href");
    live.innerHTML = event.data;
    if (focused) live.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    state.textContent = "live";
    state.className = "state live";
  };
  stream.onerror = () => {
    state.textContent = "not connected";
    state.className = "state late";
  };
}

addEventListener("pointerdown", (e) => (pressed = e.button === 0)); // after another button, a context menu may swallow pointerup
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (pressed = false));

// No stream while the page is hidden.
document.addEventListener("visibilitychange", () => (document.hidden ? stream.close() : open()));

const filter = document.getElementById("filter");
if (filter) {
  filter.addEventListener("input", () => {
    const query = new URLSearchParams(location.search);
    query.delete("page");
    if (filter.value) query.set("q", filter.value);
    else query.delete("q");
    history.replaceState(null, "", location.pathname + (query.size ? "?" + query : ""));
    clearTimeout(filter.timer);
    filter.timer = setTimeout(open, 150);
  });
}
open();
