// Tests of streams.
import assert from "node:assert/strict";
import { test } from "node:test";
import { BadAnswer, OffsetGone } from "asset-registry";
import { Transport, ServerID } from "../dist/transport.js";
import { caught, hangUp, page, refusal, reply, serve } from "./serve.mjs";

/** stream returns an event stream of parts. Its end is "end", "cut" or "hold", which leaves it open. */
function stream(parts, end = "end") {
  return async (response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream", "Set-Cookie": "SERVER_ID=s; Path=/" });
    for (const part of ["retry: 1\n\n", ...parts]) await new Promise((resolve) => response.write(part, resolve));
    if (end === "end") response.end();
    if (end === "cut") response.destroy();
  };
}

const change = (offset) => `id: ${offset}\ndata: {"id":"${offset}",\ndata: "dateModified":"${offset}"}\n\n`;
const bookmark = (offset) => `event: bookmark\nid: ${offset}\ndata: {"offset":"${offset}"}\n\n`;
const offsets = (seen) => seen.map((s) => s.request.split("offset=")[1]);

/** take returns what a follower yields first. */
async function take(changes, count) {
  const got = [];
  while (got.length < count) got.push((await changes.next()).value);
  await changes.return();
  return got;
}

const both = change("1") + change("2");
for (const [name, first, second] of [
  ["it ends", stream([change("1"), ":\n\n", change("2")]), "2"],
  ["it breaks off", stream([both, ":\n\n"], "cut"), "2"],
  ["it breaks off inside a message", stream([both, change("3").slice(0, 20)], "cut"), "2"],
  ["it ends inside a message", stream([both, change("3").slice(0, 20)]), "2"],
  ["its parts are no messages", stream([...both]), "2"],
  ["a bookmark moves it on", stream([both, bookmark("25")]), "25"],
  ["its lines end in CRLF", stream([both.replaceAll("\n", "\r\n")]), "2"],
  ["the retry is part of an entry", stream([`retry: 1\n${both}`]), "2"],
  ["an unknown event", stream([change("1"), "event: x\nid: 9\ndata: 1\n\n", change("2")]), "2"],
]) {
  test(`a stream goes on where it ended: ${name}`, async (t) => {
    const { client, seen } = await serve(t, [first, stream([change("30")])]);
    const got = await take(client.follow({ live: true }), 3);
    assert.deepEqual(got.map((c) => c.position), ["1;s", "2;s", "30;s"]);
    assert.deepEqual(offsets(seen), [undefined, second]);
    assert.deepEqual([seen[1].headers.accept, seen[1].headers.cookie], ["text/event-stream", "SERVER_ID=s"]);
  });
}

test("a stream is begun in spite of trouble", async (t) => {
  const told = [];
  const { client, seen } = await serve(t, [hangUp, refusal(503, ["url/server"], { "Retry-After": "0" }), stream([]),
    refusal(429, ["header/X-RateLimit-Limit"], { "Retry-After": "0" }), stream([change("2")])],
  { onRetry: (error) => told.push(error.name) });
  const [{ data }] = await take(client.follow({ position: "1", live: true }), 1);
  assert.equal(data.id, "2");
  assert.deepEqual(offsets(seen), ["1", "1", "1", "1", "1"]);
  assert.deepEqual(told, ["TransportError", "Unavailable", "TransportError", "TooManyRequests"]);
});

test("a bookmark is told", async (t) => {
  const told = [];
  const { client } = await serve(t, [stream([change("1"), bookmark("1"), bookmark("7"), change("8")])]);
  const got = await take(client.follow({ live: true, onPosition: (position) => { told.push(position); } }), 2);
  assert.deepEqual([got.map((c) => c.position), told], [["1;s", "8;s"], ["7;s"]]);
});

test("a silent stream is given up", async (t) => {
  const { url } = await serve(t, [stream([change("1")], "hold")]);
  const request = { method: "GET", url: `${url}/`, headers: {}, repeatable: true, server: new ServerID() };
  const messages = new Transport({ silence: 200 }).stream(request);
  const read = async () => {
    const got = [];
    for await (const { id } of messages) assert.ok(got.push(id) <= 2, `got ${got}, want a retry and a change`);
  };
  assert.equal((await read().then(() => undefined, (error) => error)).name, "DeadlineExceeded");
});

test("a follower ends when its signal is aborted while the stream is silent", async (t) => {
  const end = new AbortController();
  const { client, seen } = await serve(t, [stream([change("1")], "hold")]);
  const got = [];
  for await (const { data } of client.follow({ live: true, signal: end.signal })) {
    got.push(data.id);
    setTimeout(() => end.abort(), 10);
  }
  assert.deepEqual([got, seen.length], [["1"], 1]);
});

test("a stream starts over", async (t) => {
  const gone = refusal(404, ["querystring/offset"]);
  const { client, seen } = await serve(t, [gone, stream([change("1")]), gone]);
  let told = 0;
  const [{ data }] = await take(client.follow({ position: "9;old", live: true, onStartOver: () => { told++; } }), 1);
  assert.deepEqual([data.id, told, offsets(seen)], ["1", 1, ["9", undefined]]);
  await caught(client.follow({ position: "9", live: true }).next(), OffsetGone);
});

test("a registry without streams is followed by pages", async (t) => {
  const { client, seen } = await serve(t,
    [reply(200, page(["1"])), reply(200, page([], "1")), stream([change("2")])]);
  const got = await take(client.follow({ live: true, interval: 0 }), 2);
  assert.deepEqual([got.map((c) => c.data.id), offsets(seen)], [["1", "2"], [undefined, "1", "1"]]);
});

test("other streams are refused", async (t) => {
  const quarter = `data: ${"x".repeat(2 << 20)}\n`;
  for (const text of ["id: 1\ndata: x\n\n", "id: 1\ndata: 1\n\n", "data: {}\n\n", `data: ${"x".repeat(8 << 20)}`,
    quarter.repeat(5)]) {
    const { client } = await serve(t, [stream([text])]);
    await caught(client.follow({ live: true }).next(), BadAnswer);
  }
});
