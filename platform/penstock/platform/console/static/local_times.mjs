// Shows times in the zone of the viewer, with UTC in the title, and ages that grow.
const DAY_MS = 86_400_000;
const UNITS = [["d", DAY_MS], ["h", 3_600_000], ["min", 60_000]];
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const minute = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

function formatAge(ms) {
  const unit = UNITS.find(([, length]) => Math.abs(ms) >= 2 * length);
  return unit ? `${Math.round(ms / unit[1])} ${unit[0]} ago` : `${Math.max(0, Math.round(ms / 1000))} s ago`;
}

const FORMS = {
  time: (at) => full.format(at),
  clock: (at) => clock.format(at),
  minute: (at) => minute.format(at),
  age: (at) => formatAge(Date.now() - at),
};

export function showLocalTimes(root = document) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    setText(element, (FORMS[element.dataset.form] ?? FORMS.time)(Date.parse(element.getAttribute("datetime"))));
  }
  for (const element of root.querySelectorAll("text[data-time]")) {
    setText(element, (FORMS[element.dataset.form] ?? FORMS.clock)(Number(element.dataset.time)));
  }
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
