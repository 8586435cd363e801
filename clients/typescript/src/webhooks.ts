import { type Body, type Call, type Creation, type Options, type Send, creating, hidden, listOf, objectOf, step,
  textOf } from "./request.js";
import type { components } from "./schema.js";

type Schemas = components["schemas"];

/** Webhook sends the changes of the feed to an address, as the registry returns it, creates it and changes it. */
export type Webhook = Schemas["Webhook"];
export type WebhookInput = Schemas["WebhookInput"];
export type WebhookPatch = Schemas["WebhookPatch"];

/**
 * NewWebhook is a webhook with its secret, which the registry shows this once. JSON and a copy hold the secret, so that
 * a program can store it. Node prints it as [secret].
 */
export class NewWebhook {
  constructor(
    readonly data: Webhook,
    /** secret verifies signatures `v1`. */
    readonly secret: string,
  ) {}

  /** Node shows this in place of the secret. */
  [Symbol.for("nodejs.util.inspect.custom")](): object {
    return { ...this, secret: hidden };
  }
}

/** Webhooks are the webhooks of the key's broker; for an administrator, all. */
export class Webhooks {
  readonly #send: Send;

  constructor(send: Send) {
    this.#send = send;
  }

  /** create creates a webhook. Without an idempotencyKey it makes one, so that its retries create one webhook. */
  async create(webhook: WebhookInput, call: Creation = {}): Promise<NewWebhook> {
    const headers = creating(call.idempotencyKey);
    return made((await this.#send("POST", "/webhooks", { ...call, data: webhook, headers, repeatable: true }))[1]);
  }

  /** list yields the webhooks in the order of their ids. An administrator may choose one broker's webhooks. */
  async *list(options: Call & { broker?: string } = {}): AsyncGenerator<Webhook> {
    const { broker, ...call } = options;
    const query: Record<string, string> = broker === undefined || broker === "" ? {} : { broker };
    for (;;) {
      const [, body] = await this.#send("GET", "/webhooks", { ...call, query, repeatable: true });
      const webhooks = listOf<Webhook>(body);
      yield* webhooks;
      if (webhooks.length === 0 || body.next_page === undefined) return;
      query["after"] = textOf(body, "next_page", "after");
    }
  }

  /** get reads a webhook. */
  async get(id: string, call: Call = {}): Promise<Webhook> {
    return this.#one("GET", path(id), { ...call, repeatable: true });
  }

  /** change changes `url` or `state`. A new address has to answer a challenge first. */
  async change(id: string, change: WebhookPatch, call: Call = {}): Promise<Webhook> {
    return this.#one("PATCH", path(id), { ...call, data: change, repeatable: true });
  }

  /** replay sends the changes after an offset again. Without one, a disabled webhook goes on where it ended. */
  async replay(id: string, offset = "", call: Call = {}): Promise<Webhook> {
    return this.#one("POST", `${path(id)}/replay`, { ...call, data: offset === "" ? {} : { offset }, repeatable: true });
  }

  /**
   * rotate replaces the secrets. For a day messages are signed with both. It is not repeated after a lost answer,
   * because each time makes a new secret.
   */
  async rotate(id: string, call: Call = {}): Promise<NewWebhook> {
    return made((await this.#send("POST", `${path(id)}/rotate`, { ...call, data: {}, repeatable: false }))[1]);
  }

  /** remove removes a webhook. */
  async remove(id: string, call: Call = {}): Promise<void> {
    await this.#send("DELETE", path(id), { ...call, repeatable: false });
  }

  async #one(method: string, path: string, options: Options): Promise<Webhook> {
    return objectOf<Webhook>((await this.#send(method, path, options))[1]);
  }
}

function path(id: string): string {
  return `/webhooks/${step(id)}`;
}

function made(body: Body): NewWebhook {
  return new NewWebhook(objectOf<Webhook>(body), body.access?.secret ?? "");
}
