// All pages work without this script. It shows times in the zone of the browser, copies a secret to the
// clipboard, and removes it from a page that the browser keeps.
"use strict";

for (const button of navigator.clipboard ? document.querySelectorAll("[data-copy]") : []) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    const copied = document.getElementById("copied");
    copied.textContent = copied.dataset.said;
  });
}

// A reload would send the form again, which changes nothing. So the page takes the
// address of the key. The page that a browser keeps for "back" has no secret.
const shown = document.querySelector("[data-replace]");
if (shown) {
  history.replaceState(null, "", shown.dataset.replace);
  addEventListener("pagehide", () => {
    for (const id of ["secret", "try"]) document.getElementById(id)?.replaceChildren(document.getElementById("copied").dataset.gone);
  });
}

// Times stand on pages as 2026-11-22 09:30 UTC. They get the zone of the browser, and the foot of the page its name.
const zone = document.getElementById("zone");
if (zone) {
  const two = (n) => String(n).padStart(2, "0");
  for (const time of document.querySelectorAll("time")) {
    const parts = time.textContent.match(/^[\d-]{10} \d\d:\d\d(:\d\d)? UTC$/);
    if (!parts) continue;
    const at = new Date(time.dateTime);
    const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join("-");
    time.title = time.textContent;
    time.textContent = `${day} ${two(at.getHours())}:${two(at.getMinutes())}${parts[1] ? ":" + two(at.getSeconds()) : ""}`;
  }
  zone.textContent = zone.dataset.own.replace("{zone}", Intl.DateTimeFormat().resolvedOptions().timeZone);
}
