// Shows what the server sends, and filters by what is typed.
"use strict";
const live = document.getElementById("live");
const state = document.getElementById("state");
let stream;

function open() {
  if (stream) stream.close();
  stream = new EventSource("events" + location.search);
  stream.onmessage = (event) => {
    if (String(getSelection())) return; // not under the hands of somebody who copies
    live.innerHTML = event.data;
    state.textContent = "live";
    state.className = "state live";
  };
  stream.onerror = () => {
    state.textContent = "not connected";
    state.className = "state late";
  };
}

// Nobody looks at a page that is hidden.
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
