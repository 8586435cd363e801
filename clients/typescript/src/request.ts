import { BadAnswer } from "./errors.js";
import type { Reply, ServerID } from "./transport.js";

/** Call is what every method takes. */
export interface Call {
  /** signal ends the call. */
  signal?: AbortSignal | undefined;
}

/** Creation creates an object. */
export interface Creation extends Call {
  /** idempotencyKey is the same each time that a caller repeats a creation. */
  idempotencyKey?: string;
}

/** Write changes an object. */
export interface Write extends Call {
  /** token is the asset's owner token. */
  token?: string | undefined;
  /** ifMatch is the tag of an answer. The registry changes nothing if the asset has changed since. */
  ifMatch?: string | undefined;
}

/** Body is the object of an answer. */
export interface Body {
  data: unknown;
  access?: { token?: string; transfer?: string; secret?: string } | null;
  next_page?: { offset?: string; after?: string } | null;
  prev_page?: { offset?: string } | null;
}

/** hidden is how Node prints a secret. */
export const hidden = "[secret]";

/** objectOf returns the object of an answer. It throws a BadAnswer if it is none. */
export function objectOf<T>(body: Body): T {
  if (!isObject(body.data)) throw new BadAnswer("the answer has no object");
  return body.data as T;
}

/** listOf returns the objects of an answer. It throws a BadAnswer if they are no list of objects. */
export function listOf<T>(body: Body): T[] {
  if (!Array.isArray(body.data) || !body.data.every(isObject)) throw new BadAnswer("the answer has no list of objects");
  return body.data as T[];
}

/** textOf returns a text of an answer. It throws a BadAnswer if it is none. */
export function textOf(body: Body, part: "next_page" | "prev_page", name: string): string {
  const text = (body[part] as Record<string, unknown> | null | undefined)?.[name];
  if (typeof text !== "string") throw new BadAnswer(`the answer has no text at ${part}.${name}`);
  return text;
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Options are the parts of a request. */
export interface Options extends Write {
  data?: unknown;
  /** file is sent as a form, to a path beside the versions, instead of data. */
  file?: Blob;
  query?: Record<string, string> | undefined;
  headers?: Record<string, string>;
  repeatable: boolean;
  server?: ServerID;
}

/** Send sends a request, and returns the answer and its object. */
export type Send = (method: string, path: string, options: Options) => Promise<[Reply, Body]>;

/** secret checks a key or a token. Its errors never hold the value. */
export function secret(name: string, value: string): string {
  if (!/^[!-~]{1,1000}$/.test(value)) throw new RangeError(`${name} must have 1 to 1000 visible ASCII characters`);
  return value;
}

/** step makes an id a step of a path. */
export function step(id: string): string {
  if (["", ".", ".."].includes(id)) throw new RangeError("an id must not be empty, . or ..");
  return encodeURIComponent(id);
}

/** creating returns the header of a creation that may be repeated. Without a key it makes one. */
export function creating(key = newKey(), reference = ""): Record<string, string> {
  if (!/^[!-~]{1,255}$/.test(key)) throw new RangeError("idempotencyKey must have 1 to 255 visible ASCII characters");
  if (!/^[!-~]{0,200}$/.test(reference)) throw new RangeError("reference must have at most 200 visible ASCII characters");
  return { "Idempotency-Key": key, ...(reference === "" ? {} : { "Registry-Reference": reference }) };
}

/** newKey returns a random Idempotency-Key. Pages without TLS have no randomUUID, and Node 18 has no crypto. */
function newKey(): string {
  const bytes = Uint8Array.from({ length: 16 }, () => Math.random() * 256);
  globalThis.crypto?.getRandomValues(bytes);
  return Array.from(bytes, (n) => n.toString(16).padStart(2, "0")).join("");
}
