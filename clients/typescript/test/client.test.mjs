// Tests of requests, retries and answers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { gzipSync } from "node:zlib";
import * as registry from "asset-registry";
import { caught, hangUp, key, refusal, reply, serve, token } from "./serve.mjs";

const { Client } = registry;
const now = { "Retry-After": "0" };

test("no object shows a secret", async (t) => {
  const made = reply(201, { data: { id: "a" }, access: { token, transfer: token } });
  const { client } = await serve(t, [made, made]);
  const [created, transfer] = [await client.create({}), await client.makeTransfer()];
  assert.deepEqual([created.token, created.transfer, transfer.token, transfer.transfer], Array(4).fill(token));
  const all = { client, created, transfer };
  const shown = inspect(all, { depth: 9, showHidden: true }) + JSON.stringify(client) + String(created);
  assert.ok(!shown.includes(key) && !shown.includes(token), shown);
});

test("a copy and JSON hold the tokens", async (t) => {
  const made = reply(201, { data: { id: "a" }, access: { token, transfer: "t" } }, { ETag: '"1"' });
  const { client } = await serve(t, [made, made, made]);
  for (const owned of [await client.create({}), await client.makeTransfer(), await client.recover("a", "lost")]) {
    for (const copy of [{ ...owned }, JSON.parse(JSON.stringify(owned)), structuredClone(owned), Object.assign({}, owned)]) {
      assert.deepEqual([copy.data.id, copy.token, copy.transfer, copy.etag], ["a", token, "t", owned.etag]);
    }
  }
});

test("a draft is removed", async (t) => {
  const { client, seen } = await serve(t, [(response) => response.writeHead(204).end(), hangUp,
    refusal(404, ["url/asset_id"])]);
  await client.remove("a", { token });
  const error = await caught(client.remove("a", { token, ifMatch: '"1"' }), registry.NotFound);
  assert.equal(error.attempts, 2);
  assert.deepEqual(seen.map((s) => [s.request, s.headers["x-access-token"]]),
    Array(3).fill(["DELETE /api/2.5/assets/a", token]));
});

test("a recovery gives tokens and is tried once", async (t) => {
  const given = reply(200, { data: { id: "a" }, access: { token, transfer: "t" } }, { ETag: '"2"' });
  const { client, seen } = await serve(t, [given, hangUp]);
  const got = await client.recover("a", "lost");
  assert.deepEqual([got.data.id, got.token, got.transfer, got.etag], ["a", token, "t", '"2"']);
  await caught(client.recover("a", "lost"), registry.TransportError);
  assert.deepEqual(seen.map((s) => [s.request, s.body]),
    Array(2).fill(["POST /api/2.5/assets/a/recovery", '{"data":{"reason":"lost"}}']));
});

test("no error shows a secret", async (t) => {
  const { client, url } = await serve(t, [refusal(403, ["body/data"]), hangUp], { attempts: 1 });
  const transfer = new registry.Transfer({ id: "b" }, "", { token, transfer: token });
  const calls = [
    () => client.change("a", {}, { token }), () => client.change("a", {}, { token }),
    () => client.change("a", {}, { token: `${token}\n` }), async () => new Client(url, { key: `${key}\n` }),
    async () => new Client(url, { key: `${key}:` }), async () => new Client(`http://${key}@127.0.0.1`),
    async () => new Client(`http://${key}@`), () => client.takeOver("a", transfer, `${token} `),
  ];
  for (const call of calls) {
    const shown = inspect(await caught(call(), Error), { depth: 9, showHidden: true });
    assert.ok(!shown.includes(key) && !shown.includes(token), shown);
  }
});

test("ids cannot lead elsewhere", async (t) => {
  const { client, seen } = await serve(t, [reply(200, { data: {} })]);
  await client.get("../transfers?x#y");
  assert.equal(seen[0].request, "GET /api/2.5/assets/..%2Ftransfers%3Fx%23y");
  for (const bad of ["", ".", ".."]) await caught(client.get(bad), RangeError);
});

test("an error has every object", async (t) => {
  const { client } = await serve(t, [refusal(400, ["body/title", "body/items.0.quantity"], { "X-Request-ID": "r1" })]);
  const error = await caught(client.create({}), registry.InvalidRequest);
  assert.deepEqual(error.errors.map((e) => `${e.location}/${e.name}`), ["body/title", "body/items.0.quantity"]);
  assert.deepEqual([error.status, error.requestID, error.attempts, error.name], [400, "r1", 1, "InvalidRequest"]);
});

test("a creation is repeated under one key", async (t) => {
  const { client, seen } = await serve(t, [hangUp, refusal(503, ["url/server"], now), refusal(429, ["header/x"]),
    reply(201, { data: { id: "a" }, access: {} })]);
  await client.create({});
  assert.equal(seen.length, 4);
  assert.equal(new Set(seen.map((s) => s.headers["idempotency-key"])).size, 1);
});

test("another creation has another key", async (t) => {
  const made = reply(201, { data: { id: "a" }, access: {} });
  const { client, seen } = await serve(t, [made, made, made]);
  await client.create({});
  await client.create({});
  await client.create({}, { idempotencyKey: "mine" });
  const keys = seen.map((s) => s.headers["idempotency-key"]);
  assert.equal(new Set(keys).size, 3);
  assert.equal(keys[2], "mine");
  assert.match(keys[0], /^[0-9a-f]{32}$/);
});

test("a creation has a reference", async (t) => {
  const { client, seen } = await serve(t, [reply(201, { data: { id: "a" }, access: { token: "t" } }),
    reply(200, { data: { id: "a" } })]);
  const first = await client.create({}, { reference: "lot-1" });
  const again = await client.create({}, { reference: "lot-1" });
  assert.deepEqual(seen.map((s) => s.headers["registry-reference"]), ["lot-1", "lot-1"]);
  assert.deepEqual([first.token, again.data.id, again.token], ["t", "a", ""]);
  await assert.rejects(client.create({}, { reference: "a b" }), RangeError);
});

test("a write without a tag is repeated only if nothing was done", async (t) => {
  const writes = [(c) => c.change("a", {}), (c) => c.replace("a", {}), (c) => c.items.add("a", {}),
    (c) => c.items.change("a", "b", {}), (c) => c.documents.replace("a", "b", {}),
    (c) => c.relatedProcesses.remove("a", "b")];
  for (const [first, want] of [[refusal(503, ["url/server"], now), 1], [hangUp, 1],
    [refusal(429, ["header/x"], now), 2]]) {
    for (const write of writes) {
      const { client, seen } = await serve(t, [first, reply(200, { data: {} })]);
      await write(client).catch(() => undefined);
      assert.equal(seen.length, want);
    }
  }
});

test("a take-over is repeated", async (t) => {
  const { client, seen } = await serve(t, [hangUp, reply(200, { data: {} })]);
  await client.takeOver("a", new registry.Transfer({ id: "b" }, "", { token, transfer: token }), token);
  assert.equal(seen.length, 2);
});

test("a write with a tag is repeated", async (t) => {
  const { client, seen } = await serve(t, [hangUp, refusal(412, ["url/precondition"])]);
  const error = await caught(client.items.add("a", {}, { ifMatch: '"1"' }), registry.PreconditionFailed);
  assert.deepEqual([error.attempts, error.uncertain], [2, true]);
  assert.deepEqual(seen.map((s) => s.headers["if-match"]), ['"1"', '"1"']);
});

test("a wait beyond the deadline is not begun", async (t) => {
  const { client, seen } = await serve(t, [refusal(429, ["header/x"], { "Retry-After": "100" })], { timeout: 10_000 });
  const error = await caught(client.get("a"), registry.TooManyRequests);
  assert.deepEqual([error.retryAfter, seen.length], [100_000, 1]);
});

test("attempts are bounded", async (t) => {
  const { client, seen } = await serve(t, Array(9).fill(refusal(503, ["url/server"], now)), { attempts: 3 });
  const error = await caught(client.get("a"), registry.Unavailable);
  assert.deepEqual([error.attempts, seen.length], [3, 3]);
});

test("the forms of Retry-After", async (t) => {
  const longest = 999_999_999_000;
  for (const [value, want] of [["7", 7000], ["Thu, 01 Jan 1970 00:00:00 GMT", 0], ["soon", undefined],
    ["-1", undefined], ["2592000", 2_592_000_000], ["9".repeat(400), longest],
    ["Fri, 31 Dec 9999 23:59:59 GMT", longest], ["Wed, 99 Xyz", undefined]]) {
    const { client } = await serve(t, [refusal(429, ["header/x"], { "Retry-After": value })], { attempts: 1 });
    assert.equal((await caught(client.get("a"), registry.TooManyRequests)).retryAfter, want);
  }
});

test("a refusal by a proxy is typed", async (t) => {
  for (const [status, body] of [[502, "<html>"], [503, "[]"], [504, '{"errors": [1]}']]) {
    const { client } = await serve(t, [reply(status, body)], { attempts: 1 });
    const error = await caught(client.get("a"), registry.Unavailable);
    assert.deepEqual([error.status, error.errors], [status, []]);
  }
});

test("large answers are refused", async (t) => {
  const large = JSON.stringify({ data: "x".repeat(2000) });
  const chunked = (response) => {
    response.writeHead(200);
    response.write(large);
    response.end();
  };
  const zipped = reply(200, gzipSync(large), { "Content-Encoding": "gzip" });
  for (const answer of [reply(200, large), chunked, zipped]) {
    const { client } = await serve(t, [answer], { maxAnswer: 1000 });
    await caught(client.get("a"), registry.BadAnswer);
  }
});

test("incomplete answers are refused", async (t) => {
  const first = (all) => all.next();
  for (const [call, body] of [
    [(c) => first(c.pages()), { data: [] }], [(c) => first(c.pages()), { data: {}, next_page: { offset: "" } }],
    [(c) => first(c.pages()), { data: [{ dateModified: "1" }], next_page: { offset: "" } }],
    [(c) => first(c.pages()), { data: [{}], next_page: { offset: "1" } }],
    [(c) => first(c.pages()), { data: [1], next_page: { offset: "1" } }],
    [(c) => first(c.follow()), { data: [{}], next_page: { offset: "1" } }],
    [(c) => first(c.ownAssets()), { data: [], next_page: null }],
    [(c) => all(c.revisions("a")), { data: [{}] }],
    [(c) => c.items.list("a"), { data: {} }], [(c) => c.create({}), { data: 1 }], [(c) => c.get("a"), { data: null }],
    [(c) => c.suggest("x"), { data: {} }], [(c) => c.webhooks.get("w"), { data: [] }],
    [(c) => all(c.webhooks.list()), { data: [{}], next_page: 1 }],
  ]) {
    const { client } = await serve(t, [reply(200, body)]);
    await caught(call(client), registry.BadAnswer);
  }
});

async function all(generator) {
  const got = [];
  for await (const one of generator) got.push(one);
  return got;
}

test("an answer without a body is refused where nothing permits it", async (t) => {
  for (const status of [204, 304]) {
    const empty = (response) => response.writeHead(status).end();
    const { client } = await serve(t, [empty, empty], { attempts: 1 });
    await caught(client.create({}), registry.RegistryError);
    await caught(client.get("a"), registry.RegistryError);
  }
});

test("an answer that breaks off is none", async (t) => {
  const cut = (response) => {
    response.writeHead(200, { "Content-Length": "1000" });
    response.write('{"data": {}}', () => response.destroy());
  };
  const { client } = await serve(t, [cut], { attempts: 1 });
  await caught(client.get("a"), registry.TransportError);
});

test("a slow answer ends at the deadline", async (t) => {
  const drip = (response) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write(" "), 10);
    response.on("close", () => clearInterval(timer));
  };
  const { client } = await serve(t, [drip], { timeout: 200 });
  await caught(client.get("a"), registry.DeadlineExceeded);
});

test("a signal ends a call", async (t) => {
  const end = new AbortController();
  const { client } = await serve(t, [() => end.abort(new Error("enough"))]);
  assert.equal((await caught(client.get("a", { signal: end.signal }), Error)).message, "enough");
});

test("an unchanged asset is the known one", async (t) => {
  const { client, seen } = await serve(t, [reply(200, { data: { id: "a" } }, { ETag: '"1"' }), reply(304, "")]);
  const known = await client.get("a");
  assert.equal(await client.get("a", { known }), known);
  assert.equal(seen[1].headers["if-none-match"], '"1"');
});

test("revisions end at the empty page", async (t) => {
  const { client, seen } = await serve(t, [
    reply(200, { data: [{ revision: 2 }], next_page: { offset: "x" } }), reply(200, { data: [], next_page: {} })]);
  const got = [];
  for await (const { revision } of client.revisions("a", { token })) got.push(revision);
  assert.deepEqual(got, [2]);
  assert.deepEqual(seen.map((s) => s.headers["x-access-token"]), [token, token]);
});

test("suggestions are texts", async (t) => {
  const { client, seen } = await serve(t, [reply(200, { data: ["екскаватор"] }), reply(200, { data: [] })]);
  assert.deepEqual(await client.suggest("екс & x"), ["екскаватор"]);
  assert.equal(seen[0].request, "GET /api/2.5/search/suggest?q=%D0%B5%D0%BA%D1%81+%26+x");
  await client.suggest("x", {}, { status: ["active", "complete"] });
  assert.equal(seen[1].request, "GET /api/2.5/search/suggest?status=active&status=complete&q=x");
});

test("a snapshot lists its files", async (t) => {
  const { client, seen } = await serve(t, [reply(200, { data: { position: "p", segments: [{ from: "0", path: "/x" }] } })]);
  const { position, segments } = await client.snapshot();
  assert.deepEqual([position, segments[0].from], ["p", "0"]);
  assert.equal(seen[0].request, "GET /api/2.5/snapshot");
});

test("a proof is awaited, and its numbers keep their digits", async (t) => {
  const data = '{"data":{"index":1,"leaf":{"v":1},"path":["x"],"checkpoint":"c","asset":{"items":[{"quantity":240.50}]}}}';
  const { client, seen } = await serve(t, [reply(503, {}, { "Retry-After": "0" }), reply(200, data), reply(200, data)]);
  const proof = await client.proof("a", 7);
  assert.equal(String(proof.asset.items[0].quantity), "240.50");
  await client.proof("a");
  const path = "GET /api/2.5/assets/a/proof";
  assert.deepEqual(seen.map((s) => s.request), [`${path}?revision=7`, `${path}?revision=7`, path]);
});

test("a caller hears of ignored fields unless it has sent an object back", async (t) => {
  const theirs = { title: "x", dateModified: "2026-11-20T12:00:00+02:00" };
  const calls = [[(c) => c.create({}), true], [(c) => c.create(theirs), false], [(c) => c.change("a", {}), true],
    [(c) => c.replace("a", theirs), false], [(c) => c.documents.add("a", { author: "x" }), true],
    [(c) => c.documents.add("a", theirs), false]];
  const told = reply(200, { data: { id: "a" }, access: {} }, { "Registry-Ignored": "documents, owner" });
  const { client } = await serve(t, [...calls.map(() => told), reply(200, { data: { id: "a" } })]);
  for (const [call, hears] of calls) assert.deepEqual((await call(client)).ignored, hears ? ["documents", "owner"] : []);
  assert.deepEqual((await client.change("a", {})).ignored, []);
});
