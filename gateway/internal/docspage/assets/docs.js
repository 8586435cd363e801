// Searches the page, copies examples, and sends those with data-send where the sandbox keys work.
// Without script, the page stays as the server made it.
"use strict";

const main = document.getElementById("main");
const registry = new URL(document.querySelector(".brand").href).href.replace(/\/docs(\/uk)?$/, "");
const api = new URL(".", document.querySelector("[rel=service-desc]").href).href.slice(0, -1);
const ukrainian = {"Search": "Пошук", "No result": "Нічого не знайдено", "Results": "Знайдено", "the first are shown": "показано перші",
  "Copy": "Копіювати", "Copied": "Скопійовано", "API key": "Ключ API", "Answer": "Відповідь", "Send": "Надіслати", "Sending…": "Надсилається…",
  "No answer": "Немає відповіді"};
const t = text => document.documentElement.lang === "uk" ? ukrainian[text] : text;
const longest = 100_000; // characters of an answer that are shown

for (const origin of document.querySelectorAll(".origin")) origin.textContent = registry;

function make(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// The guides and operations that a search looks through, with their text in small letters.
const entries = [...main.querySelectorAll(".guide, .operation")].map(part => {
  const heading = part.querySelector("h2, summary"), summary = part.querySelector("strong");
  const isGuide = part.matches(".guide");
  const title = heading.textContent, note = isGuide ? "" : summary.textContent;
  return {title, note, head: `${title} ${note}`.toLowerCase(), text: isGuide ? part.textContent.toLowerCase() : "",
    address: "#" + (isGuide ? heading : part.querySelector("div")).id};
});

// The entries with each word of a query: those with all of them in the title or the summary come first.
function matches(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const first = entries.filter(entry => words.every(word => entry.head.includes(word)));
  return first.concat(entries.filter(entry => !first.includes(entry) && words.every(word => (entry.head + entry.text).includes(word))));
}

function addSearch() {
  const most = 10; // results that are shown
  const input = make("input", {type: "search", autocomplete: "off", spellcheck: false, maxLength: 100});
  const status = make("p", {}), list = make("ul", {className: "found", hidden: true});
  status.setAttribute("role", "status");
  input.addEventListener("input", () => {
    const found = matches(input.value);
    list.replaceChildren(...found.slice(0, most).map(({title, note, address}) =>
      make("li", {}, make("a", {href: address}, title, make("small", {}, note)))));
    list.hidden = !found.length;
    const count = !found.length ? t("No result")
      : `${t("Results")}: ${found.length}` + (found.length > most ? `, ${t("the first are shown")}: ${most}` : "");
    status.textContent = input.value.trim() ? count : "";
  });
  document.getElementById("contents").after(make("div", {className: "search"}, make("label", {}, t("Search"), input), status, list));
}
addSearch();

function copyButton(pre) {
  const button = make("button", {type: "button", className: "button", textContent: t("Copy")});
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(pre.textContent);
    } catch { // the page has no clipboard, as its address is not https
      getSelection().selectAllChildren(pre);
      document.execCommand("copy");
    }
    button.textContent = t("Copied");
  });
  return button;
}

// The fields of a request: its API key, the parts of its path, and its parameters.
function fieldsOf(pre, path) {
  const fields = [{name: "API key", where: "key", value: "broker"}];
  for (const [, name] of path.matchAll(/{(\w+)}/g)) fields.push({name, where: "path", required: true});
  if (pre.dataset.header) fields.push({name: pre.dataset.header, where: "header", required: true});
  for (const row of pre.parentElement.querySelectorAll(".parameters tbody tr")) {
    const name = row.querySelector("code").textContent, where = row.querySelector(".in").textContent;
    if (where === "query" || where === "header") fields.push({name, where, value: name === "opt_pretty" ? "1" : ""});
  }
  return fields;
}

// The address, the headers and the command of a request with what the form holds. The path begins
// after root.
function requestOf(root, path, inputs) {
  const headers = {};
  let key = "", address = path, query = "";
  for (const {name, dataset: {where}, value} of inputs) {
    if (where === "path") address = address.replace(`{${name}}`, value ? encodeURIComponent(value) : "$" + name.toUpperCase());
    if (!value) continue;
    if (where === "key") key = value;
    if (where === "header") headers[name] = value;
    if (where === "query") query += (query ? "&" : "?") + name + "=" + encodeURIComponent(value);
  }
  address = root + address + query;
  const words = ["curl -s"];
  if (key) words.push("-u " + quote(key + ":"));
  for (const [name, value] of Object.entries(headers)) words.push("-H " + quote(`${name}: ${value}`));
  if (key) headers.Authorization = "Basic " + btoa(String.fromCharCode(...new TextEncoder().encode(key + ":")));
  return {address, headers, command: words.join(" ") + ` \\\n  "${address}"`};
}

// A word as a shell reads it.
function quote(word) {
  return /^[\w:.-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'";
}

async function send(method, {address, headers}, body) {
  if (body) headers["Content-Type"] = "application/json";
  if (method === "POST") headers["Idempotency-Key"] = crypto.getRandomValues(new Uint32Array(4)).join("-");
  const answer = await fetch(address, {method, headers, body, cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(90_000)});
  const status = `${answer.status} ${answer.statusText}`, type = answer.headers.get("Content-Type") ?? "";
  const content = await answer.blob();
  if (content.size && !/json|yaml|text|javascript/.test(type)) return {status, text: `${content.size} bytes of ${type}`};
  const text = await content.text();
  return {status, text: text.length > longest ? text.slice(0, longest) + "…" : text};
}

// The id and the tokens of a new asset go into the fields that want them.
function remember(text) {
  const made = JSON.parse(text);
  const known = {id: made.data.id, "X-Access-Token": made.access.token};
  for (const [name, value] of Object.entries(known))
    for (const input of main.querySelectorAll(`input[name="${name}"]`)) {
      input.value = value;
      input.dispatchEvent(new Event("input", {bubbles: true}));
    }
}

function sender(pre) {
  const [method, path] = pre.dataset.send.split(" ");
  const body = pre.querySelector(".body")?.textContent;
  const root = "beside" in pre.dataset ? registry : api;
  const inputs = [], labels = [];
  for (const {name, where, value = "", required = false} of fieldsOf(pre, path)) {
    const input = make("input", {name, value, required, autocomplete: "off", spellcheck: false});
    input.dataset.where = where;
    inputs.push(input);
    labels.push(make("label", {}, where === "key" ? t(name) : name, input));
  }
  const status = make("p", {}), answer = make("pre", {className: "answer", hidden: true, tabIndex: 0});
  status.setAttribute("role", "status");
  answer.setAttribute("role", "group");
  answer.setAttribute("aria-label", t("Answer"));
  const button = make("button", {className: "button", textContent: t("Send")});
  const form = make("form", {className: "send"}, ...labels, make("div", {className: "row"}, button, copyButton(pre), status), answer);
  form.addEventListener("input", () => {
    if (pre.className === "curl") pre.firstChild.textContent = requestOf(root, path, inputs).command;
  });
  form.addEventListener("submit", async event => {
    event.preventDefault();
    button.disabled = true;
    status.textContent = t("Sending…");
    try {
      const got = await send(method, requestOf(root, path, inputs), body);
      answer.textContent = got.text;
      answer.hidden = got.text === "";
      if (method === "POST" && got.status.startsWith("201")) remember(got.text);
      status.textContent = got.status;
    } catch (problem) {
      status.textContent = `${t("No answer")}: ${problem.message}`;
    }
    button.disabled = false;
  });
  pre.after(form);
  form.dispatchEvent(new Event("input"));
}

for (const pre of main.querySelectorAll("pre")) {
  if (pre.dataset.send && main.dataset.try === "true") sender(pre);
  else pre.after(make("div", {className: "row"}, copyButton(pre)));
}

// A browser that does not open an operation by its address gets it opened.
function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const closed = target?.closest("details:not([open])");
  if (!closed) return;
  closed.open = true;
  target.scrollIntoView();
}
addEventListener("hashchange", reveal);
reveal();
