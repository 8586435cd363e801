// Copies the address of a page.
"use strict";

(() => {
  const button = document.getElementById("copy-link");
  if (!navigator.clipboard) return; // only pages with https have it
  const said = document.getElementById("copied");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(button.dataset.link);
      said.textContent = button.dataset.done;
    } catch (error) { // the browser forbids it: people copy the text
      said.textContent = button.dataset.link;
    }
  });
  button.hidden = false;
})();
