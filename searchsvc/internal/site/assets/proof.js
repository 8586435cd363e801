// Checks a record against the public log (docs/log.md, "Proofs"), and compares it with the
// page. It asks the registry for the proof only, and computes everything else.
"use strict";

(() => {
  const run = document.getElementById("check-run");
  const button = document.getElementById("check-button");
  const steps = document.getElementById("check-steps");
  const facts = document.getElementById("check-facts");
  const utf8 = new TextEncoder();

  // A failed check has the name of its step.
  class Failure extends Error {
    constructor(step, why) { super(why); this.step = step; }
  }
  // Numbers keep their text: a double would change exact decimals.
  class Numeral { constructor(text) { this.text = text; } }

  const sha256 = async (...parts) => {
    const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) { all.set(part, at); at += part.length; }
    return new Uint8Array(await crypto.subtle.digest("SHA-256", all));
  };
  const hex = bytes => Array.from(bytes, b => b.toString(16).padStart(2, "0")).join("");
  const isSame = (a, b) => hex(a) === hex(b);

  // base64 accepts the one standard form (docs/log.md, "The public log").
  const base64 = text => {
    const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
    if (btoa(String.fromCharCode(...bytes)) !== text) throw new Error("not base64");
    return bytes;
  };
  const decimal = text => {
    if (!/^(0|[1-9][0-9]{0,15})$/.test(text) || !Number.isSafeInteger(Number(text))) throw new Error("not a number");
    return Number(text);
  };

  // parse reads JSON: objects become Maps, numbers Numerals. It refuses repeated names.
  const parse = text => {
    let at = 0;
    const fail = () => { throw new Error("malformed JSON at " + at); };
    const blank = () => { while (" \t\n\r".includes(text[at] || "x")) at++; };
    const expect = sign => { blank(); if (text[at] !== sign) fail(); at++; };
    const string = () => {
      const from = at++;
      while (text[at] !== '"') {
        if (at >= text.length) fail();
        at += text[at] === "\\" ? 2 : 1;
      }
      at++;
      const value = JSON.parse(text.slice(from, at));
      if (!value.isWellFormed()) fail();
      return value;
    };
    const list = (end, element) => {
      at++;
      blank();
      if (text[at] === end) { at++; return; }
      for (;;) {
        element();
        blank();
        if (text[at] === end) { at++; return; }
        expect(",");
      }
    };
    const value = depth => {
      blank();
      if (depth > 64) fail();
      if (text[at] === "{") {
        const object = new Map();
        list("}", () => {
          blank();
          if (text[at] !== '"') fail();
          const name = string();
          if (object.has(name)) fail();
          expect(":");
          object.set(name, value(depth + 1));
        });
        return object;
      }
      if (text[at] === "[") {
        const array = [];
        list("]", () => array.push(value(depth + 1)));
        return array;
      }
      if (text[at] === '"') return string();
      const word = /(?:true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)/y;
      word.lastIndex = at;
      const found = word.exec(text);
      if (!found) fail();
      at = word.lastIndex;
      const words = new Map([["true", true], ["false", false], ["null", null]]);
      return words.has(found[0]) ? words.get(found[0]) : new Numeral(found[0]);
    };
    const result = value(0);
    blank();
    if (at !== text.length) fail();
    return result;
  };

  // canonical writes a value in its one form (docs/log.md, "Canonical form").
  const canonical = value => {
    if (value instanceof Numeral) return value.text;
    if (Array.isArray(value)) return "[" + value.map(canonical).join(",") + "]";
    if (value instanceof Map) {
      const names = [...value.keys()].sort((a, b) => (a < b ? -1 : 1)); // by UTF-16 code units
      return "{" + names.map(name => JSON.stringify(name) + ":" + canonical(value.get(name))).join(",") + "}";
    }
    return JSON.stringify(value);
  };

  // publicKey reads a key of a log (docs/log.md, "Origin and keys").
  const publicKey = async text => {
    const [name, id, ...rest] = text.split("+");
    const bytes = base64(rest.join("+"));
    if (!name || bytes.length !== 33 || bytes[0] !== 1) throw new Error("not the key of a log");
    const hash = await sha256(utf8.encode(name + "\n"), bytes);
    if (hex(hash.slice(0, 4)) !== id) throw new Error("the id of the key is wrong");
    let key;
    try {
      key = await crypto.subtle.importKey("raw", bytes.slice(1), "Ed25519", false, ["verify"]);
    } catch (error) {
      throw Object.assign(new Error("no Ed25519"), { unsupported: true });
    }
    return { name, id, key };
  };

  // openCheckpoint verifies the signatures of a checkpoint and returns what it says.
  const openCheckpoint = async (signed, keys) => {
    const cut = signed.indexOf("\n\n");
    if (cut < 0 || signed.length > 65536) throw new Error("malformed checkpoint");
    const text = signed.slice(0, cut + 1);
    const [origin, size, root] = text.split("\n");
    const lines = signed.slice(cut + 2).split("\n");
    if (lines.pop() !== "" || lines.length > 100) throw new Error("malformed signatures");
    let good = 0;
    for (const line of lines) {
      const [dash, name, sent, more] = line.split(" ");
      if (dash !== "\u2014" || more !== undefined) throw new Error("malformed signature");
      const bytes = base64(sent);
      for (const key of keys) {
        if (key.name !== name || key.id !== hex(bytes.slice(0, 4))) continue;
        if (!await crypto.subtle.verify("Ed25519", key.key, bytes.slice(4), utf8.encode(text))) {
          throw new Error("the signature is wrong");
        }
        if (name === origin) good++;
      }
    }
    if (good === 0) throw new Error("the log has not signed with this key");
    return { origin, size: decimal(size), root: base64(root) };
  };

  // rootOf computes the root of the tree from a leaf (RFC 9162, 2.1.3.2).
  const rootOf = async (leaf, index, size, path) => {
    if (index >= size || path.length > 63) throw new Error("no such leaf");
    let hash = await sha256(new Uint8Array([0]), leaf);
    let node = index, last = size - 1;
    for (const sibling of path) {
      if (last === 0 || sibling.length !== 32) throw new Error("the path has a wrong length");
      if (node % 2 === 1 || node === last) {
        hash = await sha256(new Uint8Array([1]), sibling, hash);
        while (node % 2 === 0 && node !== 0) { node = Math.floor(node / 2); last = Math.floor(last / 2); }
      } else {
        hash = await sha256(new Uint8Array([1]), hash, sibling);
      }
      node = Math.floor(node / 2);
      last = Math.floor(last / 2);
    }
    if (last !== 0) throw new Error("the path has a wrong length");
    return hash;
  };

  // positionOf returns a timestamp in microseconds since the epoch.
  const positionOf = stamp => {
    const form = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{6})([+-]\d\d:\d\d)$/.exec(stamp);
    const seconds = form ? Date.parse(form[1] + form[3]) : NaN;
    if (Number.isNaN(seconds)) throw new Error("not a timestamp");
    return BigInt(seconds) * 1000n + BigInt(form[2]);
  };

  // leaves lists the values of a record that have a text, by their paths.
  const leaves = (value, path, all) => {
    const below = name => (path ? path + "." + name : name);
    if (value instanceof Map) value.forEach((member, name) => leaves(member, below(name), all));
    else if (Array.isArray(value)) value.forEach((element, i) => leaves(element, below(String(i)), all));
    else all.set(path, value instanceof Numeral ? value.text : String(value));
    return all;
  };

  // comparePage checks that the page shows each value of the record, and no other.
  const comparePage = record => {
    const text = value => value.replace(/\r\n?/g, "\n").replaceAll("\0", "\ufffd"); // as HTML has it
    const wanted = leaves(record, "", new Map());
    const shown = document.querySelectorAll("main [data-path]");
    const seen = new Set();
    for (const element of shown) {
      const path = element.dataset.path;
      const value = text(element.dataset.value ?? element.textContent);
      if (!wanted.has(path) || seen.has(path) || text(wanted.get(path)) !== value) {
        throw new Failure("page", path);
      }
      seen.add(path);
    }
    for (const element of document.querySelectorAll("main [data-copy]")) {
      const path = element.dataset.copy;
      const value = text(element.dataset.value ?? element.textContent);
      if (!wanted.has(path) || text(wanted.get(path)) !== value) throw new Failure("page", path);
    }
    for (const [path, value] of wanted) {
      if (!seen.has(path) && value !== "") throw new Failure("page", path);
    }
    return seen.size;
  };

  // attempt names the step that an error belongs to.
  const attempt = async (step, action) => {
    try {
      return await action();
    } catch (error) {
      if (error.unsupported || error instanceof Failure) throw error;
      throw new Failure(step, error.message);
    }
  };

  const readProof = async () => {
    let answer;
    try {
      answer = await fetch(run.dataset.proof, { cache: "no-store", credentials: "omit" });
    } catch (error) {
      return { result: "unreachable" };
    }
    if (answer.status === 503) return { result: "waiting" };
    if (!answer.ok) return { result: "unreachable" };
    return { text: await answer.text() };
  };

  // check returns the result, and marks each step that has passed.
  const check = async passed => {
    if (!globalThis.crypto?.subtle || !String.prototype.isWellFormed) return { result: "unsupported" };
    const read = await readProof();
    if (read.result) return read;
    const told = {};
    const data = await attempt("signature", async () => {
      const answer = parse(read.text).get("data");
      const keys = await Promise.all(
        document.getElementById("check-key").value.split(/\s+/).filter(Boolean).map(publicKey));
      Object.assign(told, await openCheckpoint(answer.get("checkpoint"), keys));
      return answer;
    });
    passed("signature");
    const leaf = data.get("leaf");
    await attempt("included", async () => {
      told.index = decimal(data.get("index").text);
      const root = await rootOf(utf8.encode(canonical(leaf)), told.index, told.size, data.get("path").map(base64));
      if (!isSame(root, told.root)) throw new Error("the path does not lead to the checkpoint");
    });
    passed("included");
    const record = data.get("asset");
    await attempt("asset", async () => {
      if (leaf.get("v").text !== "1" || leaf.get("asset") !== run.dataset.asset) throw new Error("another asset");
      if (record.get("id") !== run.dataset.asset) throw new Error("another asset");
      if (String(positionOf(record.get("dateModified"))) !== leaf.get("position").text) throw new Error("another time");
      const salt = data.get("salt");
      if (!/^[0-9a-f]{64}$/.test(salt)) throw new Error("no salt");
      const bare = new Map(record);
      bare.delete("dateModified");
      const sealed = await sha256(
        Uint8Array.from(salt.match(/../g), pair => parseInt(pair, 16)), utf8.encode(canonical(bare)));
      if (hex(sealed) !== leaf.get("commitment")) throw new Error("the leaf is of another content");
    });
    passed("asset");
    if (BigInt(leaf.get("position").text) > positionOf(run.dataset.modified)) return { result: "newer", told };
    told.values = comparePage(record);
    passed("page");
    return { result: "ok", told };
  };

  const mark = (step, state) => {
    const row = steps.querySelector(`[data-step="${step}"]`);
    row.className = state;
    const said = { yes: steps.dataset.passed, no: steps.dataset.not, "": steps.dataset.skipped }[state];
    const sign = row.querySelector(".mark-of");
    sign.textContent = { yes: "✓", no: "✗", "": "–" }[state];
    sign.setAttribute("role", "img");
    sign.setAttribute("aria-label", said);
  };

  const show = (result, told) => {
    for (const text of document.querySelectorAll("#check-result [data-result]")) {
      text.hidden = text.dataset.result !== result;
    }
    facts.hidden = !told;
    for (const fill of facts.querySelectorAll("[data-fill]")) fill.textContent = told?.[fill.dataset.fill] ?? "";
  };

  button.addEventListener("click", async () => {
    button.disabled = true;
    show("running");
    steps.hidden = true;
    for (const row of steps.children) mark(row.dataset.step, "");
    let end;
    try {
      end = await check(step => mark(step, "yes"));
    } catch (error) {
      end = { result: error.unsupported ? "unsupported" : "failed" };
      if (error instanceof Failure) {
        mark(error.step, "no");
        run.dataset.why = error.message;
      }
    }
    steps.hidden = !["ok", "failed"].includes(end.result);
    show(end.result, end.result === "ok" ? end.told : null);
    button.textContent = button.dataset.again;
    button.disabled = false;
    button.focus();
  });
})();
