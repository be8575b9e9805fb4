// Shows `data-tip` beside the mouse, and beside what the keyboard has reached.
const GAP = 14;

export function enableTooltips() {
  const tip = document.getElementById("tip");
  const show = (text, x, y) => {
    tip.textContent = text;
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(x + GAP, innerWidth - width - 8);
    const top = y + GAP + height > innerHeight ? y - GAP - height : y + GAP;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${Math.max(8, top)}px`;
  };
  const hide = () => { tip.hidden = true; };
  document.addEventListener("pointermove", (event) => {
    const text = event.target.closest?.("[data-tip]")?.dataset.tip;
    if (text) show(text, event.clientX, event.clientY); else hide();
  });
  document.addEventListener("focusin", (event) => {
    const text = event.target.closest?.("[data-tip]")?.dataset.tip;
    if (!text) return hide();
    const { right, bottom } = event.target.getBoundingClientRect();
    show(text, right, bottom);
  });
  document.addEventListener("scroll", hide, { passive: true });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
}
