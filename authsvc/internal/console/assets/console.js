// All pages work without this script. It copies a secret to the clipboard, and removes
// it from a page that the browser keeps.
"use strict";

for (const button of navigator.clipboard ? document.querySelectorAll("[data-copy]") : []) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    document.getElementById("copied").textContent = "Copied.";
  });
}

// A reload would send the form again, which changes nothing. So the page takes the
// address of the key. The page that a browser keeps for "back" has no secret.
const shown = document.querySelector("[data-replace]");
if (shown) {
  history.replaceState(null, "", shown.dataset.replace);
  addEventListener("pagehide", () => {
    for (const id of ["secret", "try"]) document.getElementById(id)?.replaceChildren("no longer shown");
  });
}
