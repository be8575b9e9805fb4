// Starts what makes a page live. Without scripts, pages show the same, as of their loading.
import { enableLiveSearch } from "./live_search.mjs";
import { followPage } from "./live_updates.mjs";
import { showLocalTimes } from "./local_times.mjs";
import { switchTheme } from "./theme.mjs";
import { enableTooltips } from "./tooltips.mjs";

showLocalTimes();
setInterval(showLocalTimes, 1000);
enableLiveSearch();
enableTooltips();
followPage();

const theme = document.getElementById("theme");
theme.addEventListener("click", () => { theme.textContent = `Theme: ${switchTheme()}`; });
