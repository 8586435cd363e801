// Copies the address of a page, and loads the check of a record once somebody asks for it.
"use strict";

(() => {
  const copy = document.getElementById("copy-link");
  if (navigator.clipboard) { // only pages with https have it
    const said = document.getElementById("copied");
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(copy.dataset.link);
        said.textContent = copy.dataset.done;
      } catch (error) { // the browser forbids it: people copy the text
        said.textContent = copy.dataset.link;
      }
    });
    copy.hidden = false;
  }

  const run = document.getElementById("check-run");
  if (!run) return;
  const check = document.getElementById("check-button");
  const failed = run.querySelector("[data-result=unreachable]");
  const load = () => {
    const script = document.createElement("script");
    check.disabled = true;
    failed.hidden = true;
    script.onload = () => {
      check.removeEventListener("click", load);
      check.disabled = false;
      check.click(); // the script listens by now
    };
    script.onerror = () => {
      failed.hidden = check.disabled = false;
      check.focus();
    };
    script.src = run.dataset.script;
    document.head.append(script);
  };
  check.addEventListener("click", load);
  run.hidden = false;
})();
