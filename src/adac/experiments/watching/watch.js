
// While a run goes on: when there is something new, the page is loaded again, and looks as it did.

const KEPT = "adac-watch";
const controls = () => [...document.querySelectorAll("select[id], input[id]")];
const pressed = () => [...document.querySelectorAll("button[aria-pressed]")];

function keep() {
  const values = Object.fromEntries(controls().map((one) => [one.id, one.type === "checkbox" ? one.checked : one.value]));
  const off = pressed().map((one) => one.getAttribute("aria-pressed") === "false");
  sessionStorage.setItem(KEPT, JSON.stringify({ values, off, top: window.scrollY }));
}

function recall() {
  const kept = JSON.parse(sessionStorage.getItem(KEPT) || "null");
  if (!kept) return;
  for (const one of controls()) {
    if (!(one.id in kept.values)) continue;
    if (one.type === "checkbox") one.checked = kept.values[one.id];
    else one.value = kept.values[one.id];
    one.dispatchEvent(new Event("input"));
  }
  pressed().forEach((one, i) => { if (kept.off[i]) one.click(); });
  window.scrollTo(0, kept.top);
}

async function look() {
  try {
    const answer = await fetch("version", { cache: "no-store" });
    const version = await answer.text();
    if (answer.ok && version !== DATA.live.version) { keep(); location.reload(); return; }
    byId("summary").textContent = DATA.live.status;
  } catch {
    byId("summary").textContent = "adac watch has ended; the page stays as it is";
  }
  setTimeout(look, 1000 * DATA.live.seconds);
}

recall();
look();
