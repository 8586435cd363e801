// Tests of webhooks.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { hangUp, reply, serve, token } from "./serve.mjs";

const made = reply(200, { data: { id: "w" }, access: { secret: token } });

test("requests of webhooks are as the contract says", async (t) => {
  const calls = [
    [(c) => c.webhooks.create({ url: "https://x", opt_fields: "*" }), "POST /api/2.5/webhooks",
      '{"data":{"url":"https://x","opt_fields":"*"}}'],
    [(c) => c.webhooks.get("w"), "GET /api/2.5/webhooks/w", ""],
    [(c) => c.webhooks.change("w", { state: "disabled" }), "PATCH /api/2.5/webhooks/w", '{"data":{"state":"disabled"}}'],
    [(c) => c.webhooks.replay("w", "2026"), "POST /api/2.5/webhooks/w/replay", '{"data":{"offset":"2026"}}'],
    [(c) => c.webhooks.replay("w"), "POST /api/2.5/webhooks/w/replay", '{"data":{}}'],
    [(c) => c.webhooks.rotate("w"), "POST /api/2.5/webhooks/w/rotate", '{"data":{}}'],
    [(c) => c.webhooks.remove("w/.."), "DELETE /api/2.5/webhooks/w%2F..", ""],
  ];
  for (const [call, request, body] of calls) {
    const { client, seen } = await serve(t, [made]);
    await call(client);
    assert.deepEqual([seen[0].request, seen[0].body], [request, body]);
    assert.equal("idempotency-key" in seen[0].headers, request === "POST /api/2.5/webhooks");
  }
});

test("no webhook shows its secret", async (t) => {
  const { client } = await serve(t, [made, made]);
  for (const webhook of [await client.webhooks.create({ url: "https://x" }), await client.webhooks.rotate("w")]) {
    assert.deepEqual([webhook.secret, webhook.data.id], [token, "w"]);
    const shown = inspect(webhook, { depth: 9, showHidden: true }) + String(webhook);
    assert.ok(!shown.includes(token), shown);
    assert.equal(JSON.parse(JSON.stringify(webhook)).secret, token);
    assert.equal({ ...webhook }.secret, token);
  }
});

test("webhooks are listed to the last page", async (t) => {
  const { client, seen } = await serve(t, [
    reply(200, { data: [{ id: "v" }, { id: "w" }], next_page: { after: "w" } }), reply(200, { data: [{ id: "x" }] })]);
  const got = [];
  for await (const { id } of client.webhooks.list({ broker: "b" })) got.push(id);
  assert.deepEqual(got, ["v", "w", "x"]);
  const path = "GET /api/2.5/webhooks?broker=b";
  assert.deepEqual(seen.map((s) => s.request), [path, `${path}&after=w`]);
});

test("a rotation and a removal are tried once", async (t) => {
  const calls = [[(c) => c.webhooks.create({ url: "https://x" }), 2], [(c) => c.webhooks.change("w", {}), 2],
    [(c) => c.webhooks.replay("w"), 2], [(c) => c.webhooks.rotate("w"), 1], [(c) => c.webhooks.remove("w"), 1]];
  for (const [call, want] of calls) {
    const { client, seen } = await serve(t, [hangUp, made]);
    await call(client).catch(() => undefined);
    assert.equal(seen.length, want);
  }
});
