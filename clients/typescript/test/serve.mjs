// A server that answers as a test says.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { inspect } from "node:util";
import { Client } from "asset-registry";

export const key = "key-3b1f6f";
export const token = "token-77c0aa";

/** reply returns an answer. A body that is not text or bytes is sent as JSON. */
export function reply(status, body, headers = {}) {
  const text = typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
  return (response) => response.writeHead(status, headers).end(text);
}

/** refusal returns an error with an error object for each place. */
export function refusal(status, places, headers = {}) {
  const errors = places.map((place) => place.split("/")).map(([location, ...name]) =>
    ({ location, name: name.join("/"), description: "refused" }));
  return reply(status, { status: "error", errors }, headers);
}

/** hangUp closes the connection without an answer. */
export const hangUp = (response) => response.destroy();

/** page is the body of a page of the feed. */
export function page(times, offset = "") {
  return { data: times.map((time) => ({ id: time, dateModified: time })), next_page: { offset: times.at(-1) ?? offset } };
}

/** serve starts a server that gives the replies in their order. It returns a client and the requests as they come. */
export async function serve(t, replies, options = {}) {
  const seen = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    seen.push({ request: `${request.method} ${request.url}`, headers: request.headers, body });
    replies[seen.length - 1](response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${server.address().port}`;
  return { seen, url, client: new Client(url, { key, ...options }) };
}

/** caught returns the error of a promise, which is of a kind. */
export async function caught(promise, kind) {
  const error = await promise.then(() => undefined, (error) => error);
  assert.ok(error instanceof kind, `got ${inspect(error)}, want ${kind.name}`);
  return error;
}
