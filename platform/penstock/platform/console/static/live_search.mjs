// Searches while one types: the address takes the search, and the updates follow it.
import { followPage } from "./live_updates.mjs";

const DELAY_MS = 120;

export function enableLiveSearch() {
  for (const form of document.querySelectorAll("form[data-live-search]")) {
    let timer;
    const search = () => {
      const address = new URL(location.href);
      for (const [name, value] of new FormData(form)) {
        if (value) address.searchParams.set(name, value); else address.searchParams.delete(name);
      }
      history.replaceState(null, "", address);
      followPage();
    };
    form.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(search, DELAY_MS);
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      search();
    });
  }
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input, textarea, select");
    if (event.key === "/" && !isTyping) {
      const field = document.querySelector("input[type=search]");
      if (field) {
        event.preventDefault();
        field.focus();
        field.select();
      }
    }
  });
}
