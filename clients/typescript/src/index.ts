/**
 * asset-registry is a client of the asset registry, for Node and browsers. It needs no other package.
 *
 * Numbers stay exact: `quantity` is a Decimal. The client repeats a request after 429 and 503 as `Retry-After` says,
 * and gives up at a deadline. Keys and tokens never stand in errors, and Node prints no object with them. See
 * docs/contract.md for the behaviour of the registry.
 *
 * @packageDocumentation
 */
export * from "./client.js";
export { ApiError, BadAnswer, Conflict, DeadlineExceeded, type ErrorObject, Forbidden, InvalidRequest, NotFound,
  OffsetGone, PreconditionFailed, RegistryError, TooLarge, TooManyRequests, TransportError, Unauthorized,
  Unavailable } from "./errors.js";
export { Decimal, parse } from "./json.js";
export { type AssetsChanged, BadSignature, readMessage, type WebhookChallenge } from "./messages.js";
export type { Call, Creation, Write } from "./request.js";
export type { components, operations, paths } from "./schema.js";
export type { Bounds } from "./transport.js";
export { NewWebhook, type Webhook, type WebhookInput, type WebhookPatch, Webhooks } from "./webhooks.js";
