import { ApiError, BadAnswer, DeadlineExceeded, PreconditionFailed, RegistryError, TooManyRequests, TransportError,
  Unavailable, apiError } from "./errors.js";
import { parse } from "./json.js";
import { type Message, joined, messages } from "./stream.js";

/** Bounds limit each call. Times are in milliseconds. */
export interface Bounds {
  /** timeout bounds a call with its retries; 60,000 by default. */
  timeout?: number;
  /** attempts bounds the requests of a call; 6 by default. */
  attempts?: number;
  /** maxAnswer bounds the bytes of an answer; 16 MiB by default. */
  maxAnswer?: number;
  /** onRetry hears of each failed attempt and of the time until the next one. */
  onRetry?: (error: RegistryError, wait: number) => void;
}

/** ServerID holds the cookie that names the registry's data (docs/contract.md, "Server cookie"). A browser hides it. */
export class ServerID {
  constructor(public value = "") {}

  /**
   * update keeps the cookie of an answer. It reports whether the request sent the cookie of other data. A request at
   * the same time may have got the new cookie before. So it is compared with the one that was sent.
   */
  update(sent: string, headers: Headers): boolean {
    for (const line of headers.getSetCookie?.() ?? []) {
      const value = /^SERVER_ID=([!#-+\--:<-[\]-~]{1,200})(?:;|$)/.exec(line)?.[1];
      if (value === undefined) continue;
      this.value = value;
      return sent !== "" && sent !== value;
    }
    return false;
  }
}

/** Request is a request. `repeatable` tells that doing it twice is harmless. */
export interface Request {
  method: string;
  url: string;
  headers: Record<string, string>;
  body?: string | FormData;
  /** longer is how many milliseconds the request may take beyond the bounds of all others. */
  longer?: number;
  repeatable: boolean;
  server: ServerID;
  signal?: AbortSignal | undefined;
}

/** Reply is an answer that was read to its end. Its body is undefined if it is no JSON. */
export interface Reply {
  status: number;
  headers: Headers;
  body: unknown;
}

const backoff = 250; // before the second attempt, if there is no Retry-After; then twice as long each time
const longestBackoff = 30_000;
const longestAttempt = 20_000; // the registry itself answers within 10 s
const silence = 30_000; // without a byte, after which a stream is given up (docs/contract.md, "Streams")

/** pause returns the time to wait after a failed attempt: Retry-After and up to a quarter more, or a backoff. */
export function pause(error: RegistryError, attempt: number): number {
  const after = error instanceof ApiError ? error.retryAfter : undefined;
  // A server that says 0 each time is not asked without a pause.
  if (after !== undefined && after > 0) return after + Math.random() * (after / 4 + backoff);
  return (0.5 + Math.random() / 2) * Math.min(backoff * 2 ** Math.min(attempt - 1, 20), longestBackoff);
}

/** longestTimer is the longest time of a timer, in milliseconds. A timer of a longer one ends at once. */
const longestTimer = 2 ** 31 - 1;

/** sleep waits. It rejects with the reason of a signal that is aborted. */
export async function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  for (let left = milliseconds; ; left -= longestTimer) {
    await sleepOnce(Math.min(left, longestTimer), signal);
    if (left <= longestTimer) return;
  }
}

function sleepOnce(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** Transport sends requests and repeats them. */
export class Transport {
  readonly timeout: number;
  readonly attempts: number;
  readonly maxAnswer: number;
  readonly onRetry: (error: RegistryError, wait: number) => void;
  readonly silence: number;

  constructor(bounds: Bounds & { silence?: number }) {
    this.silence = bounds.silence ?? silence;
    this.timeout = bounds.timeout ?? 60_000;
    this.attempts = bounds.attempts ?? 6;
    this.maxAnswer = bounds.maxAnswer ?? 16 << 20;
    this.onRetry = bounds.onRetry ?? (() => undefined);
  }

  /** send sends a request until it is answered without a reason to repeat it, or the bounds are reached. */
  async send(request: Request): Promise<Reply> {
    const deadline = Date.now() + this.timeout + (request.longer ?? 0);
    let uncertain = false;
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#attempt(request, deadline, attempt);
      if (!("error" in outcome)) return outcome;
      const { error, wait } = outcome;
      error.attempts = attempt;
      error.uncertain = uncertain;
      uncertain ||= request.method !== "GET" && (error instanceof TransportError || error instanceof Unavailable);
      if (wait === undefined || attempt >= this.attempts || Date.now() + wait >= deadline) throw error;
      this.onRetry(error, wait);
      await sleep(wait, request.signal);
    }
  }

  /** #attempt sends a request once. After a failure it tells how long to wait; undefined means: do not repeat it. */
  async #attempt(request: Request, deadline: number, attempt: number):
    Promise<Reply | { error: RegistryError; wait: number | undefined }> {
    let reply: Reply;
    const sent = request.server.value;
    try {
      reply = await this.#exchange(request, Math.min(deadline - Date.now(), longestAttempt + (request.longer ?? 0)));
    } catch (error) {
      if (!(error instanceof RegistryError)) throw error; // the caller's signal
      const repeat = error instanceof TransportError && request.repeatable;
      return { error, wait: repeat ? pause(error, attempt) : undefined };
    }
    const renewed = request.server.update(sent, reply.headers);
    const unchanged = reply.status === 304 && "If-None-Match" in request.headers;
    if ((reply.status >= 200 && reply.status < 300) || unchanged) return reply;
    const error = apiError(title(request), reply.status, reply.headers, reply.body);
    // With the cookie of other data, the registry has done nothing.
    if (renewed && error instanceof PreconditionFailed) return { error, wait: 0 };
    const repeat = error instanceof TooManyRequests || (request.repeatable && error instanceof Unavailable);
    return { error, wait: repeat ? pause(error, attempt) : undefined };
  }

  async #exchange(request: Request, within: number): Promise<Reply> {
    return during(request, within, async (end) => this.#reply(await this.#fetch(request, end), request, end));
  }

  /**
   * stream sends a request for a stream once. It yields the messages of the stream, or the answer that came instead. It
   * ends when the stream does, and throws a TransportError if it breaks off or is silent.
   */
  async *stream(request: Request): AsyncGenerator<Message | Reply> {
    const end = new AbortController();
    const first = await during(request, longestAttempt, async (attempt) => {
      attempt.signal.addEventListener("abort", () => end.abort(), { once: true });
      const sent = request.server.value;
      const response = await this.#fetch(request, end);
      request.server.update(sent, response.headers);
      const kind = response.headers.get("Content-Type") ?? "";
      if (response.status === 200 && /^text\/event-stream\b/.test(kind)) return response;
      return this.#reply(response, request, end);
    });
    if (!(first instanceof Response)) {
      if (first.status !== 200) throw apiError(title(request), first.status, first.headers, first.body);
      yield first;
      return;
    }
    const reader = first.body?.getReader();
    try {
      const read = (): Promise<Uint8Array | undefined> =>
        during(request, this.silence, async (attempt) => {
          attempt.signal.addEventListener("abort", () => end.abort(), { once: true });
          return (await reader?.read())?.value;
        });
      yield* messages(read);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new BadAnswer(`${title(request)}: ${error.message}`);
    } finally {
      end.abort();
    }
  }

  async #fetch(request: Request, end: AbortController): Promise<Response> {
    const cookie = request.server.value === "" ? {} : { Cookie: `SERVER_ID=${request.server.value}` };
    return fetch(request.url, { method: request.method, headers: { ...request.headers, ...cookie },
      body: request.body ?? null, redirect: "manual", cache: "no-store", signal: end.signal });
  }

  /** #reply reads an answer to its end. */
  async #reply(response: Response, request: Request, end: AbortController): Promise<Reply> {
    const text = await this.#read(response, title(request), end);
    return { status: response.status, headers: response.headers, body: decoded(text) };
  }

  /** #read reads a body, as long as it is within the bounds. */
  async #read(response: Response, request: string, end: AbortController): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    const reader = response.body?.getReader();
    for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read()) {
      size += part.value.length;
      if (size > this.maxAnswer) {
        end.abort();
        throw new BadAnswer(`${request}: the answer has more than ${this.maxAnswer} bytes`);
      }
      chunks.push(part.value);
    }
    return joined(chunks);
  }
}

/**
 * during does a part of a request within a time. It aborts `end` when the time is over or the caller's signal is
 * aborted. It throws a RegistryError, or the reason of the caller's signal.
 */
async function during<T>(request: Request, within: number, part: (end: AbortController) => Promise<T>): Promise<T> {
  const end = new AbortController();
  const stop = (): void => end.abort();
  const timer = setTimeout(stop, Math.min(within, longestTimer));
  request.signal?.addEventListener("abort", stop, { once: true });
  try {
    request.signal?.throwIfAborted();
    return await part(end);
  } catch (error) {
    if (error instanceof RegistryError) throw error;
    request.signal?.throwIfAborted();
    if (end.signal.aborted) throw new DeadlineExceeded(`${title(request)}: no whole answer in time`);
    throw new TransportError(`${title(request)}: no whole answer`, { cause: error });
  } finally {
    clearTimeout(timer);
    request.signal?.removeEventListener("abort", stop);
  }
}

/** title names a request in errors. */
export function title(request: Request): string {
  const url = new URL(request.url);
  return `${request.method} ${url.pathname}${url.search}`;
}

function decoded(bytes: Uint8Array): unknown {
  try {
    return json(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

/** json reads JSON. It returns undefined for another text. */
export function json(text: string): unknown {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}
