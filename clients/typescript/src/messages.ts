import { BadAnswer, RegistryError } from "./errors.js";
import { parse } from "./json.js";
import type { webhooks } from "./schema.js";

/** AssetsChanged is a message with changes of the feed. Its `data.offset` is the offset of the last entry. */
export type AssetsChanged = webhooks["assetsChanged"]["post"]["requestBody"]["content"]["application/json"];
/** WebhookChallenge is the first message to an address. The receiver answers 2xx with its `data`. */
export type WebhookChallenge = webhooks["webhookChallenge"]["post"]["requestBody"]["content"]["application/json"];

/** BadSignature: a message to a receiver is not of the registry, or it is not of now. */
export class BadSignature extends RegistryError {}

/** near is how far the time of a message may be off, in seconds. */
const near = 300;

/**
 * readMessage reads a message to the receiver of a webhook, if it is signed with the webhook's secret. `header` returns
 * a header of the request, such as `(name) => request.headers[name]`. `body` has the bytes as they came. A message
 * without a right signature `v1`, or whose time is more than five minutes from `now`, in milliseconds, is a BadSignature.
 */
export async function readMessage(
  secret: string,
  header: (name: string) => string | string[] | null | undefined,
  body: Uint8Array,
  now = Date.now(),
): Promise<AssetsChanged | WebhookChallenge> {
  const sent = (name: string): string => String(header(name) ?? "");
  const at = sent("webhook-timestamp");
  if (!/^\d{1,15}$/.test(at) || Math.abs(now / 1000 - Number(at)) > near) {
    throw new BadSignature("the time of the message is not near");
  }
  const signed = joined(new TextEncoder().encode(`${sent("webhook-id")}.${at}.`), body);
  const { subtle } = await webCrypto();
  const key = await subtle.importKey("raw", decoded(secret.replace(/^whsec_/, "")), { name: "HMAC", hash: "SHA-256" },
    false, ["verify"]);
  let right = false;
  for (const signature of sent("webhook-signature").split(" ")) {
    if (!/^v1,[A-Za-z0-9+/]{43}=$/.test(signature)) continue;
    right = (await subtle.verify("HMAC", key, decoded(signature.slice(3)), signed)) || right;
  }
  if (!right) throw new BadSignature("the message has no right signature");
  try {
    return parse(new TextDecoder("utf-8", { fatal: true }).decode(body)) as AssetsChanged | WebhookChallenge;
  } catch (error) {
    throw new BadAnswer("the message cannot be read", { cause: error });
  }
}

/** decoded returns the bytes of base64. */
function decoded(text: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  } catch {
    throw new RangeError("secret must be whsec_ and base64");
  }
}

function joined(head: Uint8Array, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(head.length + body.length);
  all.set(head);
  all.set(body, head.length);
  return all;
}

/** webCrypto returns the platform's Web Cryptography. Node 18 has it in a module only. */
async function webCrypto(): Promise<Crypto> {
  if (globalThis.crypto !== undefined) return globalThis.crypto;
  const name = "node:crypto";
  return ((await import(name)) as { webcrypto: Crypto }).webcrypto;
}
