// Tests of numbers and of JSON.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { BadAnswer, Decimal } from "asset-registry";
import { caught, reply, serve } from "./serve.mjs";

test("numbers of an answer keep their digits", async (t) => {
  const text = '{"data": {"items": [{"quantity": 3, "location": {"latitude": 50.4501000, "longitude": -30}},' +
    ' {"quantity": 12345678901234567890123456789.0001, "other": 12345678901234567890}]}}';
  const { client } = await serve(t, [reply(200, text)]);
  const { items } = (await client.get("a")).data;
  assert.equal(inspect(items[0].quantity), "Decimal(3)");
  assert.equal(String(items[0].location.latitude), "50.4501000");
  assert.equal(items[0].location.longitude, -30);
  assert.equal(`${items[1].quantity}`, "12345678901234567890123456789.0001");
  assert.equal(String(items[1].other), "12345678901234567890");
  assert.throws(() => items[1].quantity * 2, TypeError);
  assert.equal(JSON.stringify(items[0].quantity), '"3"');
});

test("all of JSON is read as JSON.parse reads it", async (t) => {
  for (const text of [
    '{"data": {"a": "\\"\\\\\\"", "b\\u0041": [true, false, null, [], {}], "": "\\ud83d\\ude00", "n": -0, "x": " é "}}',
    ' {\n"data"\t:\r{"x" : [ 1 , 2 ]}}\n', '{"data": {"a": 1, "a": 2}}', '{"data": {"x": "\\\\"}}',
  ]) {
    const { client } = await serve(t, [reply(200, text)]);
    assert.deepEqual((await client.get("a")).data, JSON.parse(text).data);
  }
});

test("a member named __proto__ changes no prototype", async (t) => {
  const { client } = await serve(t, [reply(200, '{"data": {"__proto__": {"polluted": true}}}')]);
  const { data } = await client.get("a");
  assert.equal(data.polluted, undefined);
});

test("other bodies are refused", async (t) => {
  for (const text of ["", "<html>", "[]", "{}", '{"data": NaN}', '{"data": 01}', '{"data": 1.}', '{"data": "\n"}',
    '{"data": "x}', '{"data": 1} x', '{"data": 1', "{1: 2}", '{"data": [1,]}', '{"data": 1,}', new Uint8Array([0xff]),
    "[".repeat(100_000), '{"data":'.repeat(200)]) {
    const { client } = await serve(t, [reply(200, text)]);
    await caught(client.get("a"), BadAnswer);
  }
});

test("numbers of a request keep their digits", async (t) => {
  const { client, seen } = await serve(t, [reply(200, { data: {} })]);
  await client.items.change("a", "b", { quantity: new Decimal("0.1000"), description: undefined });
  assert.equal(seen[0].body, '{"data":{"quantity":0.1000}}');
});

test("inexact numbers are refused", async (t) => {
  const { client } = await serve(t, []);
  for (const quantity of [0.1, NaN, Infinity, 2 ** 60, new Date(), 1n, () => 1, [undefined]]) {
    await caught(client.items.change("a", "b", { quantity }), TypeError);
  }
  for (const text of ["", "1.", ".5", "01", "+1", "NaN", "1 ", "0x1"]) {
    assert.throws(() => new Decimal(text), RangeError);
  }
});
