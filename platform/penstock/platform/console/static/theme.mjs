// Applies the theme before the first paint: the viewer's choice, otherwise that of the system.
const KEY = "penstock-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function chosenTheme() {
  try { return localStorage.getItem(KEY); } catch { return null; }
}

function applyTheme() {
  document.documentElement.dataset.theme = chosenTheme() ?? (system.matches ? "dark" : "light");
}

export function switchTheme() {
  const next = { dark: "light", light: null }[chosenTheme()];
  const theme = next === undefined ? "dark" : next;
  try {
    if (theme === null) localStorage.removeItem(KEY); else localStorage.setItem(KEY, theme);
  } catch { /* private windows may refuse storage; the system's theme stays */ }
  applyTheme();
  return theme ?? "system";
}

system.addEventListener("change", applyTheme);
applyTheme();
