// Puts RapiDoc in the place of the plain reference, and the page's own address into
// the examples. Without script, the page stays as the server made it.
"use strict";

const registry = new URL(document.querySelector(".brand").href).href.replace(/\/docs$/, "");
for (const origin of document.querySelectorAll(".origin")) origin.textContent = registry;

const explorer = document.getElementById("explorer");
const plain = document.getElementById("plain");

// reachable lets the keyboard open operations, which RapiDoc leaves to the mouse.
function reachable(root) {
  for (const head of root.querySelectorAll(".endpoint-head, .section-tag-header")) {
    head.tabIndex = 0;
    head.setAttribute("role", "button");
    head.setAttribute("aria-expanded", String(head.classList.contains("expanded")));
  }
}

// Within RapiDoc: no second margin, and what is too wide for a phone scrolls by itself.
const fit = new CSSStyleSheet();
fit.replaceSync(`
  .section-gap, .main-content-inner--view-mode { padding: 0; }
  .view-mode-request, api-response.view-mode { flex: none; min-height: 0; padding: 12px 8px; overflow-x: auto; }
  .m-endpoint > .endpoint-head { padding: 6px 8px; }
`);

function press(event) {
  const pressed = event.key === "Enter" || event.key === " ";
  if (!pressed || !event.target.matches(".endpoint-head, .section-tag-header")) return;
  event.preventDefault();
  event.target.click();
}

function show(doc, spec) {
  const tried = explorer.dataset.try === "true";
  const key = spec.securitySchemes.find(scheme => scheme.scheme === "basic");
  if (tried && key) doc.setHttpUserNameAndPassword(key.securitySchemeId, "broker", "");
  plain.remove(); // its anchors are RapiDoc's now
  explorer.removeAttribute("style"); // RapiDoc fills the screen with a hidden parent
  explorer.hidden = false;
  const hint = document.querySelector(".try");
  if (hint) hint.hidden = false;
  const root = doc.shadowRoot;
  root.adoptedStyleSheets.push(fit);
  root.addEventListener("keydown", press);
  new MutationObserver(() => reachable(root)).observe(root, {subtree: true, childList: true, attributeFilter: ["class"]});
  reachable(root);
}

if (customElements.get("rapi-doc")) {
  const doc = document.createElement("rapi-doc");
  const attributes = {
    "spec-url": new URL(explorer.dataset.document, location).href,
    "allow-try": explorer.dataset.try,
    "allow-authentication": explorer.dataset.try,
    "allow-server-selection": "false",
    "allow-spec-file-download": "false",
    "fetch-credentials": "omit",
    "load-fonts": "false",
    "mono-font": "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace",
    "regular-font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif",
    "render-style": "view",
    "schema-style": "tree",
    "default-schema-tab": explorer.dataset.try === "true" ? "example" : "schema",
    "show-header": "false",
    "show-info": "false",
    "theme": "light", // docs.css sets the colours of both
    "font-size": "large",
  };
  for (const [name, value] of Object.entries(attributes)) doc.setAttribute(name, value);
  doc.addEventListener("spec-loaded", event => { if (!event.detail.specLoadError) show(doc, event.detail); }, {once: true});
  explorer.append(doc);
}
