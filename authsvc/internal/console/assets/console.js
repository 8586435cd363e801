// All pages work without this. It copies a secret, and has a page that shows
// one forget it.
"use strict";

const button = document.querySelector("[data-copy]");
if (button && navigator.clipboard) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    document.getElementById("copied").textContent = "Copied.";
  });
}

// A reload of the answer to a form would send the form again, in vain: it leads
// to the key instead. The page that a browser keeps to go back to has no secret.
const shown = document.querySelector("[data-replace]");
if (shown) {
  history.replaceState(null, "", shown.dataset.replace);
  addEventListener("pagehide", () => { document.getElementById("secret").textContent = "no longer shown"; });
}
