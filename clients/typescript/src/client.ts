import { BadAnswer, OffsetGone, TooManyRequests, TransportError, Unavailable } from "./errors.js";
import { encode } from "./json.js";
import { type Body, type Call, type Creation, type Options, type Send, type Write, creating, hidden, listOf, objectOf,
  secret, step, textOf } from "./request.js";
import type { components } from "./schema.js";
import type { Message } from "./stream.js";
import { type Bounds, type Reply, type Request, ServerID, Transport, json, pause, sleep, title } from "./transport.js";
import { Webhooks } from "./webhooks.js";

type Schemas = components["schemas"];

/** The objects of the API: as the registry returns them, as a client creates them (Input), and as it changes them. */
export type Asset = Schemas["Asset"];
export type AssetInput = Schemas["AssetInput"];
export type AssetPatch = Schemas["AssetPatch"];
export type AssetReplacement = Schemas["AssetReplacement"];
export type Item = Schemas["Item"];
export type Decision = Schemas["Decision"];
export type Document = Schemas["Document"];
export type DocumentVersions = Schemas["DocumentVersions"]["data"];
export type RelatedProcess = Schemas["RelatedProcess"];
export type TransferData = Schemas["Transfer"];
export type Revision = Schemas["Revision"];
/** SearchAnswer is what a search finds. It has every change of the feed up to `position`. */
export type SearchAnswer = Schemas["SearchAnswer"];
export type SearchSuggestions = Schemas["SearchSuggestions"];
export type SearchInterpretation = Schemas["SearchInterpretation"];
export type SearchHit = Schemas["SearchHit"];
export type SearchFacet = Schemas["SearchFacet"];
/** Snapshot lists the files with all listed assets. `position` is where to follow the feed from. */
export type Snapshot = Schemas["Snapshot"];
export type Segment = Schemas["Segment"];
export type Caller = Schemas["Caller"]["data"];
/**
 * Proof shows that the public log has a change of an asset. This package does not verify it. A withdrawal and an erased
 * revision have no `salt` and no `asset`.
 */
export type Proof = Omit<Schemas["Proof"], "asset"> & { asset?: Asset };
/** Entry is an asset in a page: `id`, `dateModified` and the fields that were asked for. */
export type Entry = Schemas["Entry"];
/** OwnAsset is an asset in the list of own assets. `reference` is the name that the broker gave it. */
export type OwnAsset = Schemas["OwnEntry"];

/** ClientOptions describe a client. */
export interface ClientOptions extends Bounds {
  /** key is an API key. Without one the client only reads. */
  key?: string;
}

/** Read reads an object. If it has not changed since `known`, the answer is `known`. */
export interface Read<T> extends Call {
  known?: Answer<T> | undefined;
}

/** Listing selects entries of the feed. */
export interface Listing extends Call {
  /** limit bounds the entries of a page; 100 by default, 1000 at most. */
  limit?: number;
  /** mode is "test" for test assets, "_all_" for all; real assets by default. */
  mode?: "test" | "_all_";
  /** fields are shown besides `id` and `dateModified`. */
  fields?: readonly string[];
}

/** Own selects assets of the key's broker. */
export interface Own extends Call {
  /** offset is where to begin, exclusive: `dateModified` of an asset; the beginning by default. */
  offset?: string;
  /** limit bounds the assets of a page; 100 by default, 1000 at most. */
  limit?: number;
  /** descending lists the newest change first. */
  descending?: boolean;
  /** mode leaves out real assets; all assets by default. */
  mode?: "test";
  /** status leaves out assets in other states. */
  status?: Asset["status"];
  /** fields are shown besides `id` and `dateModified`. One of them is `reference`. */
  fields?: readonly string[];
}

/** Follow describes a follower. */
export interface Follow extends Listing {
  /** position is the position of the last change that was kept; the beginning by default. */
  position?: string;
  /** interval is the pause at the end of the feed, in milliseconds; five minutes by default. */
  interval?: number;
  /**
   * live receives changes as they happen, by a stream. From a registry without streams, follow reads pages. The default
   * is false.
   */
  live?: boolean;
  /** onPosition hears of a position that has moved on without a change. */
  onPosition?: (position: string) => void | Promise<void>;
  /** onStartOver clears the copy, because the registry does not know the position any more. */
  onStartOver?: () => void | Promise<void>;
}

/**
 * Answer is an object as the registry returned it, with its `ETag`; "" if there was none. `ignored` names fields that
 * a write has sent and the registry has ignored, such as `documents` in an asset. It is empty if an object was sent
 * back as the registry had given it: one with a `dateModified`.
 */
export class Answer<T> {
  constructor(readonly data: T, readonly etag: string, readonly ignored: readonly string[] = []) {}
}

/**
 * Owned is an object with its owner token and its transfer token. JSON and a copy hold the tokens, so that a program
 * can store them. Node prints them as [secret].
 */
class Owned<T> extends Answer<T> {
  /** token is the owner token. */
  readonly token: string;
  /** transfer is the transfer token. */
  readonly transfer: string;

  constructor(data: T, etag: string, access: { token: string; transfer: string }, ignored?: readonly string[]) {
    super(data, etag, ignored);
    this.token = access.token;
    this.transfer = access.transfer;
  }

  /** Node shows this in place of the tokens. */
  [Symbol.for("nodejs.util.inspect.custom")](): object {
    return { ...this, token: this.token && hidden, transfer: this.transfer && hidden };
  }
}

/** AssetCreation creates an asset. */
export interface AssetCreation extends Creation {
  /**
   * reference is the broker's own name for the asset, and stands for one asset, for ever. A later creation with the same
   * reference and asset returns that asset, with empty tokens: an administrator gives it others, with `recover`. With
   * another asset it is a Conflict, which names the first one.
   */
  reference?: string;
}

/** Created is a new asset, or one with new tokens. The registry shows them this once. */
export class Created extends Owned<Asset> {}

/** Transfer is a new transfer. After a take-over, the asset has its tokens. */
export class Transfer extends Owned<TransferData> {}

/** Page is a page of the feed. `next` and `previous` are offsets; `previous` is "" without a previous page. */
export interface Page {
  entries: Entry[];
  next: string;
  previous: string;
}

/** Change is an entry of the feed. A follower that starts at `position` goes on after it. */
export interface Change {
  data: Entry;
  position: string;
}

/**
 * Client speaks to one registry. Every method returns a promise that rejects with a RegistryError.
 *
 * The client repeats every request after a 429. After a 502, 503, 504 or a lost answer, the registry may have done the
 * request. The client then repeats reads, create, makeTransfer, takeOver, changes and replays of webhooks, and writes
 * with ifMatch. A second attempt of a write that was done is refused with PreconditionFailed.
 */
export class Client {
  /** items, decisions, documents and relatedProcesses are the parts of assets. */
  readonly items: Parts<Item, Schemas["ItemInput"], Schemas["ItemPatch"]>;
  readonly decisions: Parts<Decision, Schemas["DecisionInput"], Schemas["DecisionPatch"]>;
  readonly documents: Documents;
  readonly relatedProcesses: Parts<RelatedProcess, Schemas["RelatedProcessInput"], Schemas["RelatedProcessPatch"]>;
  /** webhooks are the webhooks of the key's broker; for an administrator, all. */
  readonly webhooks: Webhooks;
  readonly #root: string;
  readonly #headers: Record<string, string>;
  readonly #transport: Transport;
  readonly #server = new ServerID();

  /** baseURL is the address of the registry, without /api. */
  constructor(baseURL: string, options: ClientOptions = {}) {
    const url = URL.canParse?.(baseURL) === false ? undefined : new URL(baseURL);
    if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
      throw new RangeError("baseURL must be http://HOST or https://HOST, without a key, a query or a fragment");
    }
    this.#root = `${url.href.replace(/\/+$/, "")}/api/2.5`;
    this.#headers = { Accept: "application/json" };
    if (options.key !== undefined && options.key !== "") {
      if (options.key.includes(":")) throw new RangeError("key must not contain a colon");
      this.#headers["Authorization"] = `Basic ${btoa(`${secret("key", options.key)}:`)}`;
    }
    this.#transport = new Transport(options);
    const send = this.#send.bind(this);
    this.items = new Parts(send, "items");
    this.decisions = new Parts(send, "decisions");
    this.documents = new Documents(send, "documents");
    this.relatedProcesses = new Parts(send, "related_processes");
    this.webhooks = new Webhooks(send);
  }

  /**
   * create creates a draft. Without an idempotencyKey it makes one, so that its retries create one asset. A caller that
   * repeats a failed create within 24 hours passes a key of its own, the same each time.
   */
  async create(asset: AssetInput, call: AssetCreation = {}): Promise<Created> {
    const [reply, body] = await this.#send("POST", "/assets",
      { ...call, data: asset, headers: creating(call.idempotencyKey, call.reference), repeatable: true });
    return new Created(objectOf(body), etag(reply), access(body), ignored(reply, asset));
  }

  /** get reads an asset. */
  async get(id: string, read: Read<Asset> = {}): Promise<Answer<Asset>> {
    return get(this.#send.bind(this), `/assets/${step(id)}`, read);
  }

  /** change merges into an asset (PATCH). */
  async change(id: string, change: AssetPatch, write: Write = {}): Promise<Answer<Asset>> {
    return this.#write("PATCH", `/assets/${step(id)}`, { ...write, data: change, repeatable: false });
  }

  /** replace sets everything that the caller may write (PUT). A field that it leaves out is cleared. */
  async replace(id: string, asset: AssetReplacement, write: Write = {}): Promise<Answer<Asset>> {
    return this.#write("PUT", `/assets/${step(id)}`, { ...write, data: asset, repeatable: false });
  }

  /** remove removes a draft for good. A second attempt after a first one that was done is a NotFound. */
  async remove(id: string, write: Write = {}): Promise<void> {
    await this.#send("DELETE", `/assets/${step(id)}`, { ...write, repeatable: false });
  }

  /**
   * ownAssets yields the assets of the key's broker, drafts too, in the order of their last change. It reads pages, to
   * the end.
   */
  async *ownAssets(own: Own = {}): AsyncGenerator<OwnAsset> {
    const { status, descending, offset = "", ...options } = own;
    const more: Record<string, string> = {
      ...(descending ? { descending: "1" } : {}), ...(status === undefined ? {} : { status }) };
    const server = new ServerID(this.#server.value);
    for (let from = offset; ;) {
      const page = await this.#page(options, from, server, more, "/me/assets");
      if (page.entries.length === 0) return;
      yield* page.entries as OwnAsset[];
      from = page.next;
    }
  }

  /**
   * recover gives an asset new tokens, for its owner. It needs an administrator's key. The old tokens end at once. The
   * audit log keeps the reason. Without ifMatch it is not repeated after a lost answer: call it again, and take the
   * tokens of the last answer.
   */
  async recover(id: string, reason: string, write: Omit<Write, "token"> = {}): Promise<Created> {
    const [reply, body] = await this.#send("POST", `/assets/${step(id)}/recovery`,
      { ...write, data: { reason }, repeatable: false });
    return new Created(objectOf(body), etag(reply), access(body));
  }

  /** revisions yields the changes of an asset, newest first. */
  async *revisions(id: string, options: Call & { token?: string; limit?: number } = {}): AsyncGenerator<Revision> {
    const { limit = 100, ...call } = options;
    for (let offset = ""; ;) {
      const query = { limit: String(limit), ...(offset === "" ? {} : { offset }) };
      const [, body] = await this.#send("GET", `/assets/${step(id)}/revisions`, { ...call, query, repeatable: true });
      const revisions = listOf<Revision>(body);
      if (revisions.length === 0) return;
      yield* revisions;
      offset = textOf(body, "next_page", "offset");
      if (offset === "") throw new BadAnswer("the answer has no offset of the next page");
    }
  }

  /**
   * proof reads the proof of a revision, from 1; without one, of the newest public change. It waits while the log's
   * newest checkpoint does not cover the change.
   */
  async proof(id: string, revision = 0, call: Call = {}): Promise<Proof> {
    const query: Record<string, string> = revision === 0 ? {} : { revision: String(revision) };
    const path = `/assets/${step(id)}/proof`;
    return objectOf<Proof>((await this.#send("GET", path, { ...call, query, repeatable: true }))[1]);
  }

  /**
   * search searches assets, such as `search({ q: "приміщення", status: ["active"] })`. The contract lists the
   * parameters, in "Search". For the next page, add `search_after` of `next_page`.
   */
  async search(parameters: Record<string, string | string[]>, call: Call = {}): Promise<SearchAnswer> {
    const [, body] = await this.#send("GET", `/search?${queryOf(parameters)}`, { ...call, repeatable: true });
    return body as unknown as SearchAnswer;
  }

  /**
   * suggest returns at most 10 texts that continue a text, and find an asset that meets the filters of a search. Texts of
   * the most assets come first.
   */
  async suggest(text: string, call: Call = {}, filters: Record<string, string | string[]> = {}): Promise<string[]> {
    const query = queryOf({ ...filters, q: text });
    const [, body] = await this.#send("GET", `/search/suggest?${query}`, { ...call, repeatable: true });
    if (!Array.isArray(body.data)) throw new BadAnswer("the answer has no list");
    return (body as unknown as SearchSuggestions).data;
  }

  /** snapshot reads the list of the newest snapshot's files. A NotFound: there is none. */
  async snapshot(call: Call = {}): Promise<Snapshot> {
    return objectOf<Snapshot>((await this.#send("GET", "/snapshot", { ...call, repeatable: true }))[1]);
  }

  /** makeTransfer makes a transfer, with which the caller can take an asset over. */
  async makeTransfer(call: Call = {}): Promise<Transfer> {
    // An unused transfer ends by itself, so a repetition is harmless.
    const [, body] = await this.#send("POST", "/transfers", { ...call, data: {}, repeatable: true });
    return new Transfer(objectOf(body), "", access(body));
  }

  /** transfer reads a transfer. */
  async transfer(id: string, call: Call = {}): Promise<TransferData> {
    const path = `/transfers/${step(id)}`;
    return objectOf<TransferData>((await this.#send("GET", path, { ...call, repeatable: true }))[1]);
  }

  /**
   * takeOver makes the caller the owner. assetTransfer is the asset's transfer token. From then on `transfer.token` is
   * the asset's owner token and `transfer.transfer` its transfer token.
   */
  async takeOver(id: string, transfer: Transfer, assetTransfer: string, write: Write = {}): Promise<Answer<Asset>> {
    const data = { id: transfer.data.id, transfer: secret("assetTransfer", assetTransfer) };
    // The registry permits repetitions.
    return this.#write("POST", `/assets/${step(id)}/ownership`, { ...write, data, repeatable: true });
  }

  /** me tells whose key this is and what its rate limits leave. */
  async me(call: Call = {}): Promise<Caller> {
    return objectOf<Caller>((await this.#send("GET", "/me", { ...call, repeatable: true }))[1]);
  }

  /** pages yields the pages of the feed from an offset on, until an empty one, which it leaves out. */
  async *pages(options: Listing & { offset?: string; descending?: boolean } = {}): AsyncGenerator<Page> {
    const server = new ServerID(this.#server.value);
    for (let offset = options.offset ?? ""; ;) {
      const page = await this.#page(options, offset, server, options.descending ? { descending: "1" } : {});
      if (page.entries.length === 0) return;
      yield page;
      offset = page.next;
    }
  }

  /**
   * follow yields every change after a position, until the signal is aborted. At an empty page it waits. With `live` it
   * begins a new stream when one ends, breaks off or is silent for 30 s. While the registry is away it tries again, for
   * as long as that takes, at least each hour; onRetry hears of it. If the registry does not know the position any more,
   * follow calls onStartOver and begins at the beginning; without onStartOver it throws OffsetGone. Each change carries
   * the position to save.
   */
  async *follow(options: Follow = {}): AsyncGenerator<Change> {
    const { position = "", live = false, signal } = options;
    let [offset = "", serverID = ""] = position.split(";");
    const server = new ServerID(serverID === "" ? this.#server.value : serverID);
    try {
      for (let failures = 0; ;) {
        try {
          const pages = live ? this.#stream(options, offset, server) : this.#poll(options, offset, server);
          for await (const page of pages) {
            failures = 0;
            for (const data of page.entries) {
              yield { data, position: `${data.dateModified};${server.value}` };
              if (signal?.aborted) return;
            }
            if (page.entries.length === 0 && page.next !== "" && page.next !== offset) {
              await options.onPosition?.(`${page.next};${server.value}`);
            }
            offset = page.next === "" ? offset : page.next;
          }
        } catch (error) {
          if (error instanceof OffsetGone && options.onStartOver && offset !== "") {
            await options.onStartOver();
            offset = "";
            continue;
          }
          if (!passing(error)) throw error;
          failures++;
          const wait = Math.min(pause(error, live ? failures : failures + this.#transport.attempts), longestFollow);
          this.#transport.onRetry(error, wait);
          await sleep(wait, signal);
        }
      }
    } catch (error) {
      if (!signal?.aborted) throw error;
    }
  }

  /** #poll yields one page. It waits after an empty one. */
  async *#poll(options: Follow, offset: string, server: ServerID): AsyncGenerator<Page> {
    const page = await this.#page(options, offset, server);
    yield page;
    await rest(page, options);
  }

  /**
   * #stream yields each message of one stream as a page, and waits after it. A registry without streams answers a page,
   * which #stream yields as #poll does.
   */
  async *#stream(options: Follow, offset: string, server: ServerID): AsyncGenerator<Page> {
    const headers = { ...this.#headers, Accept: "text/event-stream" };
    const request: Request = { method: "GET", url: this.#url("/assets", listing(options, offset)), headers,
      repeatable: true, server, signal: options.signal };
    let heard = false;
    let retry = pause(new TransportError(""), 1);
    try {
      for await (const message of this.#transport.stream(request)) {
        if ("status" in message) {
          const page = pageOf(checked(request, message));
          yield page;
          await rest(page, options);
          return;
        }
        retry = message.retry ?? retry;
        heard ||= message.retry === undefined || message.data !== "";
        if (heard) yield entry(request, message);
      }
      if (!heard) throw new TransportError(`${title(request)}: the stream ended before its first message`);
    } catch (error) {
      if (!heard || !passing(error)) throw error;
      this.#transport.onRetry(error, retry);
    }
    await sleep(retry * (1 + Math.random() / 10), options.signal);
  }

  async #page(options: Listing, offset: string, server: ServerID, more: Record<string, string> = {},
    path = "/assets"): Promise<Page> {
    const query = { ...listing(options, offset), ...more };
    return pageOf((await this.#send("GET", path, { signal: options.signal, query, repeatable: true, server }))[1]);
  }

  #url(path: string, query?: Record<string, string>): string {
    return this.#root + path + (query === undefined ? "" : `?${new URLSearchParams(query).toString()}`);
  }

  async #write<T>(method: string, path: string, options: Options): Promise<Answer<T>> {
    const [reply, body] = await this.#send(method, path, options);
    return new Answer<T>(objectOf(body), etag(reply), ignored(reply, options.data));
  }

  /** #send sends a request, with retries. It returns the answer and its object, which has no data after a 304. */
  async #send(method: string, path: string, options: Options): Promise<[Reply, Body]> {
    const headers = { ...this.#headers, ...options.headers };
    // With a tag, the registry does a write only once.
    const repeatable = options.repeatable || Boolean(options.ifMatch);
    const request: Request = { method, url: this.#url(path, options.query), headers, repeatable,
      server: options.server ?? this.#server, signal: options.signal };
    if (options.data !== undefined) {
      headers["Content-Type"] = "application/json";
      request.body = encode({ data: options.data });
    }
    if (options.file !== undefined) {
      request.url = this.#root.replace(/\/api\/2\.5$/, path);
      request.body = new FormData();
      request.body.append("file", options.file, nameOf(options.file));
      request.longer = options.file.size / slowest;
    }
    if (options.token !== undefined && options.token !== "") headers["X-Access-Token"] = secret("token", options.token);
    if (options.ifMatch !== undefined && options.ifMatch !== "") headers["If-Match"] = options.ifMatch;
    const reply = await this.#transport.send(request);
    return [reply, checked(request, reply)];
  }
}

/** longestFollow is how long a follower waits at most before it asks again, in milliseconds. */
const longestFollow = 3_600_000;

/** slowest is the speed at which the registry ends an upload, in bytes a millisecond. */
const slowest = (64 << 10) / 10_000;

/** queryOf returns parameters as a query; a list is a repeated parameter. */
function queryOf(parameters: Record<string, string | string[]>): URLSearchParams {
  return new URLSearchParams(Object.entries(parameters).flatMap(([name, all]) => [all].flat().map((one) => [name, one])));
}

/** nameOf returns the name of a File; another Blob has none. */
function nameOf(file: Blob): string {
  return "name" in file && typeof file.name === "string" ? file.name : "file";
}

/** checked returns the object of an answer, which has no data if the answer has no body. */
function checked(request: Request, reply: Reply): Body {
  const empty = reply.status === 304 || (reply.status === 204 && request.method === "DELETE");
  const body = empty ? { data: undefined } : reply.body;
  if (typeof body !== "object" || body === null || !("data" in body)) {
    throw new BadAnswer(`${title(request)}: ${reply.status} with a body that is no object with data`);
  }
  return body;
}

/** listing returns the query of a page. */
function listing(options: Listing, offset: string): Record<string, string> {
  return { limit: String(options.limit ?? 100),
    ...(options.mode === undefined ? {} : { mode: options.mode }),
    ...(options.fields?.length ? { opt_fields: options.fields.join(",") } : {}),
    ...(offset === "" ? {} : { offset }) };
}

function pageOf(body: Body): Page {
  const entries = listOf<Entry>(body);
  const next = textOf(body, "next_page", "offset");
  if (entries.length > 0 && (next === "" || !entries.every(isDated))) {
    throw new BadAnswer("the answer has no offset of the next page or of an entry");
  }
  return { entries, next, previous: body.prev_page === undefined ? "" : textOf(body, "prev_page", "offset") };
}

/** entry returns a message of a stream as a page, which has no entry for a bookmark. */
function entry(request: Request, message: Message): Page {
  if (message.data === "" || !["", "bookmark"].includes(message.event)) return { entries: [], next: "", previous: "" };
  const data = json(message.data);
  if (message.id === "" || typeof data !== "object" || data === null || (message.event === "" && !isDated(data))) {
    throw new BadAnswer(`${title(request)}: a message of the stream has no offset or no object`);
  }
  return { entries: message.event === "" ? [data as Entry] : [], next: message.id, previous: "" };
}

/** isDated reports whether an entry has the time that is its offset. */
function isDated(entry: { dateModified?: unknown }): boolean {
  return typeof entry.dateModified === "string";
}

/** rest waits after an empty page. */
async function rest(page: Page, options: Follow): Promise<void> {
  if (page.entries.length > 0) return;
  await sleep((options.interval ?? 300_000) * (1 + Math.random() / 10), options.signal);
}

/** passing reports whether an error may pass by itself. */
function passing(error: unknown): error is TransportError | TooManyRequests | Unavailable {
  return [TransportError, TooManyRequests, Unavailable].some((kind) => error instanceof kind);
}

function etag(reply: Reply): string {
  return reply.headers.get("ETag") ?? "";
}

/** ignored returns the ignored fields of a write, but none if it has sent an object of the registry back. */
function ignored(reply: Reply, sent: unknown): string[] {
  const names = reply.headers.get("Registry-Ignored") ?? "";
  const sentBack = typeof sent === "object" && sent !== null && "dateModified" in sent;
  return names === "" || sentBack ? [] : names.split(", ");
}

function access(body: Body): { token: string; transfer: string } {
  const [token, transfer] = [body.access?.token, body.access?.transfer];
  return { token: typeof token === "string" ? token : "", transfer: typeof transfer === "string" ? transfer : "" };
}

async function get<T>(send: Send, path: string, read: Read<T>): Promise<Answer<T>> {
  const { known, ...call } = read;
  const headers: Record<string, string> = known?.etag ? { "If-None-Match": known.etag } : {};
  const [reply, body] = await send("GET", path, { ...call, headers, repeatable: true });
  return known !== undefined && reply.status === 304 ? known : new Answer<T>(objectOf(body), etag(reply));
}

/** Parts is one list of an asset, such as its items. The parts have addresses of their own. */
export class Parts<Part, Input, Patch, One = Part> {
  readonly #send: Send;
  readonly #kind: string;

  constructor(send: Send, kind: string) {
    this.#send = send;
    this.#kind = kind;
  }

  #path(asset: string, part?: string): string {
    const path = `/assets/${step(asset)}/${this.#kind}`;
    return part === undefined ? path : `${path}/${step(part)}`;
  }

  /** list returns the parts of an asset; of documents, the newest version of each. */
  async list(asset: string, call: Call = {}): Promise<Part[]> {
    return listOf<Part>((await this.#send("GET", this.#path(asset), { ...call, repeatable: true }))[1]);
  }

  /** get reads a part. Its tag is its asset's tag. */
  async get(asset: string, part: string, read: Read<One> = {}): Promise<Answer<One>> {
    return get(this.#send, this.#path(asset, part), read);
  }

  /** add adds a part. */
  async add(asset: string, part: Input, write: Write = {}): Promise<Answer<Part>> {
    return this.#write("POST", this.#path(asset), part, write);
  }

  /** change merges into a part (PATCH). */
  async change(asset: string, part: string, change: Patch, write: Write = {}): Promise<Answer<Part>> {
    return this.#write("PATCH", this.#path(asset, part), change, write);
  }

  /** replace adds a version to a document (PUT). Other parts have no such route. */
  async replace(asset: string, part: string, input: Input, write: Write = {}): Promise<Answer<Part>> {
    return this.#write("PUT", this.#path(asset, part), input, write);
  }

  /** remove removes a related process. Other parts have no such route. */
  async remove(asset: string, part: string, write: Write = {}): Promise<void> {
    await this.#send("DELETE", this.#path(asset, part), { ...write, repeatable: false });
  }

  async #write(method: string, path: string, data: unknown, write: Write): Promise<Answer<Part>> {
    const [reply, body] = await this.#send(method, path, { ...write, data, repeatable: false });
    return new Answer<Part>(objectOf(body), etag(reply), ignored(reply, data));
  }
}

/** Documents are the documents of an asset. */
export class Documents extends Parts<Document, Schemas["DocumentInput"], Schemas["DocumentPatch"], DocumentVersions> {
  readonly #upload: Send;

  constructor(send: Send, kind: string) {
    super(send, kind);
    this.#upload = send;
  }

  /**
   * upload sends a file to the registry, and adds a document that names it. In Node, `openAsBlob(path)` of `node:fs`
   * makes a Blob of a file, which is read as it is sent. `title` and `format` are by default the name and the type of the
   * file. The upload is repeatable: a file that no document names is removed after a day.
   */
  async upload(asset: string, file: Blob, document: Omit<Schemas["DocumentInput"], "title"> & { title?: string },
    write: Write = {}): Promise<Answer<Document>> {
    const [, body] = await this.#upload("POST", "/upload", { signal: write.signal, file, repeatable: true });
    const stored = objectOf<{ url: string; hash: string; title: string; format: string }>(body);
    return this.add(asset, { title: stored.title, format: stored.format, ...document, url: stored.url, hash: stored.hash },
      write);
  }
}
