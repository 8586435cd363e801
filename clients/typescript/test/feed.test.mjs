// Tests of the feed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { NotFound, OffsetGone, PreconditionFailed, Unavailable } from "asset-registry";
import { pause, sleep } from "../dist/transport.js";
import { caught, page, refusal, reply, serve } from "./serve.mjs";

test("pages end at the empty one", async (t) => {
  const { client, seen } = await serve(t,
    [reply(200, page(["1", "2"])), reply(200, page(["3"])), reply(200, page([], "3"))]);
  const got = [];
  for await (const { entries } of client.pages({ limit: 2 })) got.push(entries.map((entry) => entry.id));
  assert.deepEqual(got, [["1", "2"], ["3"]]);
  assert.deepEqual(seen.map((s) => s.request), ["GET /api/2.5/assets?limit=2", "GET /api/2.5/assets?limit=2&offset=2",
    "GET /api/2.5/assets?limit=2&offset=3"]);
});

test("a follower goes on after an empty page and trouble", async (t) => {
  const busy = refusal(503, ["url/server"], { "Retry-After": "0" });
  const { client, seen } = await serve(t, [reply(200, page([])), reply(200, page(["1"])), reply(200, page([], "1")),
    busy, reply(200, page(["2"]))], { attempts: 1 });
  const changes = client.follow({ interval: 0 });
  const got = [(await changes.next()).value.data.id, (await changes.next()).value.data.id];
  assert.deepEqual(got, ["1", "2"]);
  const offsets = seen.map((s) => s.request.split("&")[1]);
  assert.deepEqual(offsets, [undefined, undefined, "offset=1", "offset=1", "offset=1"]);
});

test("a follower ends when its signal is aborted", async (t) => {
  const end = new AbortController();
  const { client } = await serve(t, [reply(200, page(["1"])), reply(200, page([], "1"))]);
  const got = [];
  for await (const { data } of client.follow({ signal: end.signal })) {
    got.push(data.id);
    setTimeout(() => end.abort(), 50);
  }
  assert.deepEqual(got, ["1"]);
});

test("a follower keeps the cookie of its position", async (t) => {
  const { client, seen } = await serve(t, [
    reply(200, page(["1"]), { "Set-Cookie": "SERVER_ID=old; Path=/; HttpOnly" }),
    reply(200, { data: {} }, { "Set-Cookie": "SERVER_ID=old; Path=/" }),
    refusal(412, ["url/precondition"], { "Set-Cookie": "SERVER_ID=new; Path=/" }), reply(200, { data: {} }),
    refusal(404, ["querystring/offset"])]);
  const { position } = (await client.follow().next()).value;
  assert.equal(position, "1;old");
  await client.get("a");
  await client.change("a", {}); // its second request has the new cookie
  await caught(client.follow({ position }).next(), OffsetGone);
  assert.deepEqual(seen.map((s) => s.headers.cookie),
    [undefined, undefined, "SERVER_ID=old", "SERVER_ID=new", "SERVER_ID=old"]);
});

test("a 412 of other data is not the caller's own change", async (t) => {
  const { client } = await serve(t, [reply(200, { data: {} }, { "Set-Cookie": "SERVER_ID=old; Path=/" }),
    refusal(412, ["url/precondition"], { "Set-Cookie": "SERVER_ID=new; Path=/" }), refusal(412, ["url/precondition"])]);
  await client.get("a");
  const error = await caught(client.change("a", {}, { ifMatch: '"1"' }), PreconditionFailed);
  assert.deepEqual([error.attempts, error.uncertain], [2, false]);
});

test("a 412 without a new cookie is final", async (t) => {
  const { client, seen } = await serve(t, [refusal(412, ["url/precondition"])]);
  await caught(client.change("a", {}, { ifMatch: '"1"' }), PreconditionFailed);
  assert.equal(seen.length, 1);
});

test("another 404 is no reason to start over", async (t) => {
  const { client } = await serve(t, [refusal(404, ["url/not_found"])]);
  const onStartOver = () => assert.fail("got a start over, want none");
  const error = await caught(client.follow({ position: "1", onStartOver }).next(), NotFound);
  assert.ok(!(error instanceof OffsetGone));
});

test("own assets are listed to the end", async (t) => {
  const { client, seen } = await serve(t, [reply(200, page(["1", "2"])), reply(200, page([], "2"))]);
  const got = [];
  const own = { offset: "0", limit: 2, status: "draft", fields: ["reference"] };
  for await (const { id } of client.ownAssets(own)) got.push(id);
  assert.deepEqual(got, ["1", "2"]);
  assert.deepEqual(seen.map((s) => new URL(s.request.split(" ")[1], "http://x")).map((u) =>
    [u.pathname, u.searchParams.get("offset"), u.searchParams.get("status"), u.searchParams.get("opt_fields")]),
  ["0", "2"].map((offset) => ["/api/2.5/me/assets", offset, "draft", "reference"]));
});

test("a follower asks again within an hour, and not at once", async (t) => {
  for (const after of ["2592000", "9".repeat(30), "Fri, 31 Dec 9999 23:59:59 GMT"]) {
    const end = new AbortController();
    const waits = [];
    const onRetry = (error, wait) => {
      waits.push(wait);
      setTimeout(() => end.abort(), 50);
    };
    const busy = refusal(503, ["url/server"], { "Retry-After": after });
    const { client, seen } = await serve(t, Array(9).fill(busy), { attempts: 1, onRetry });
    assert.equal((await client.follow({ signal: end.signal }).next()).done, true);
    assert.deepEqual([waits, seen.length], [[3_600_000], 1]);
  }
});

test("a wait that no timer holds is waited for", async () => {
  const end = new AbortController();
  let over = false;
  const waiting = sleep(40 * 24 * 3_600_000, end.signal).finally(() => { over = true; });
  await sleep(20);
  assert.equal(over, false);
  end.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
});

test("a server that asks for no pause is not asked without one", () => {
  assert.ok(pause(new Unavailable("", 503, [], 0, ""), 5) >= 2000);
});

test("changes at the same time all learn of other data", async (t) => {
  const waiting = [];
  const other = (response) => {
    waiting.push(response); // all have sent the old cookie before one is answered
    if (waiting.length < 8) return;
    const refuse = refusal(412, ["url/precondition"], { "Set-Cookie": "SERVER_ID=new; Path=/" });
    for (const one of waiting) refuse(one);
  };
  const { client, seen } = await serve(t, [reply(200, { data: {} }, { "Set-Cookie": "SERVER_ID=old; Path=/" }),
    ...Array(8).fill(other), ...Array(8).fill(reply(200, { data: {} }))]);
  await client.get("a");
  await Promise.all(Array.from({ length: 8 }, () => client.change("a", {})));
  assert.deepEqual(seen.slice(1).map((s) => s.headers.cookie).sort(),
    [...Array(8).fill("SERVER_ID=new"), ...Array(8).fill("SERVER_ID=old")]);
});
