// Receives the changed blocks of this page as server-sent events.
import { showLocalTimes } from "./local_times.mjs";
import { mergeHtml } from "./merge_nodes.mjs";

const LABELS = { live: "live", waiting: "connecting", lost: "connection lost" };
let source;

export function followPage() {
  source?.close();
  if (!document.querySelector("[id^=live_]")) return showConnection("none");
  showConnection("waiting");
  source = new EventSource(pageAddress());
  source.onopen = () => showConnection("live");
  source.onerror = () => {
    showConnection("lost");
    // A server that answers with an error ends the source for good.
    if (source.readyState === EventSource.CLOSED) setTimeout(followPage, 2000);
  };
  source.onmessage = ({ data }) => {
    showProblem("");
    for (const [id, html] of Object.entries(JSON.parse(data))) {
      const element = document.getElementById(id);
      if (element) mergeHtml(element, html);
    }
    showLocalTimes();
    document.dispatchEvent(new Event("updated"));
  };
  source.addEventListener("problem", ({ data }) => showProblem(JSON.parse(data)));
}

// What a form selects is part of the address, also where the server chose it.
function pageAddress() {
  const address = new URL(location.href);
  const form = document.querySelector("form[data-live-search]");
  for (const [name, value] of form ? new FormData(form) : []) address.searchParams.set(name, value);
  return address;
}

function showConnection(state) {
  const element = document.getElementById("connection");
  element.dataset.state = state;
  element.textContent = LABELS[state] ?? "";
  element.hidden = !LABELS[state];
}

function showProblem(text) {
  const element = document.getElementById("problem");
  element.hidden = !text;
  element.textContent = text;
}

// A hidden page needs no updates.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) source?.close(); else followPage();
});
