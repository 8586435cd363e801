/** ErrorObject is one problem of a request, as the registry tells it. */
export interface ErrorObject {
  location: string;
  name: string;
  description: string;
}

/** RegistryError is the base of all errors of this package. */
export class RegistryError extends Error {
  /** attempts counts the requests that were sent. */
  attempts = 0;
  /** uncertain tells that an earlier attempt of the same write may have been done. */
  uncertain = false;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** TransportError: no whole answer arrived. The registry may have done the request or not. */
export class TransportError extends RegistryError {}

/** DeadlineExceeded: no whole answer arrived in time. */
export class DeadlineExceeded extends TransportError {}

/** BadAnswer: the answer is too large, or it is not what the API describes. */
export class BadAnswer extends RegistryError {}

/**
 * ApiError is a refusal by the registry, with all of its error objects. A 412 that is `uncertain` can be the effect of
 * the caller's own change, whose answer was lost.
 */
export class ApiError extends RegistryError {
  constructor(
    request: string,
    readonly status: number,
    readonly errors: readonly ErrorObject[],
    /** retryAfter is in milliseconds, undefined without the header. */
    readonly retryAfter: number | undefined,
    /** requestID names the request in the registry's log. */
    readonly requestID: string,
  ) {
    super(`${request}: ${status} ${errors.map((e) => `${e.location}/${e.name}: ${e.description}`).join("; ")}`.trim());
  }
}

/** InvalidRequest is a 400: each faulty field is in `errors`. */
export class InvalidRequest extends ApiError {}

/** Unauthorized is a 401: no valid API key. */
export class Unauthorized extends ApiError {}

/** Forbidden is a 403: the key may not do this, or the owner token is wrong. */
export class Forbidden extends ApiError {}

/** NotFound is a 404. */
export class NotFound extends ApiError {}

/** OffsetGone is the 404 of a listing's offset: a synchroniser starts its copy over. */
export class OffsetGone extends NotFound {}

/** Conflict is a 409: others keep changing the same asset, or a reference stands for one with other fields. */
export class Conflict extends ApiError {}

/** PreconditionFailed is a 412: the asset has changed since it had the tag of `ifMatch`. */
export class PreconditionFailed extends ApiError {}

/** TooLarge is a 413: the body or the asset is too large. */
export class TooLarge extends ApiError {}

/** TooManyRequests is a 429 that was still there after the retries. */
export class TooManyRequests extends ApiError {}

/** Unavailable is a 502, 503 or 504 that was still there after the retries. */
export class Unavailable extends ApiError {}

const byStatus: ReadonlyMap<number, typeof ApiError> = new Map<number, typeof ApiError>([
  [400, InvalidRequest], [401, Unauthorized], [403, Forbidden], [404, NotFound], [409, Conflict],
  [412, PreconditionFailed], [413, TooLarge], [429, TooManyRequests], [502, Unavailable], [503, Unavailable],
  [504, Unavailable],
]);

/** apiError makes the error of a refusal. A proxy's refusal may have a body without error objects. */
export function apiError(request: string, status: number, headers: Headers, body: unknown): ApiError {
  const errors = errorObjects(body);
  let kind = byStatus.get(status) ?? ApiError;
  if (kind === NotFound && errors.some((e) => e.location === "querystring" && e.name === "offset")) kind = OffsetGone;
  return new kind(request, status, errors, retryAfter(headers), headers.get("X-Request-ID") ?? "");
}

function errorObjects(body: unknown): ErrorObject[] {
  const errors = (body as { errors?: unknown } | null | undefined)?.errors;
  if (!Array.isArray(errors)) return [];
  return errors
    .filter((e): e is object => typeof e === "object" && e !== null)
    .map((e) => e as Partial<Record<keyof ErrorObject, unknown>>)
    .map((e) => ({ location: String(e.location), name: String(e.name), description: String(e.description) }));
}

/** longest is what a longer Retry-After counts as, in seconds. */
const longest = 999_999_999;

/** retryAfter returns the milliseconds of Retry-After (RFC 9110, 10.2.3). */
function retryAfter(headers: Headers): number | undefined {
  const value = headers.get("Retry-After")?.trim() ?? "";
  if (/^\d+$/.test(value)) return Math.min(Number(value), longest) * 1000;
  const date = /^[A-Z][a-z]{2}, /.test(value) ? Date.parse(value) : NaN;
  return Number.isNaN(date) ? undefined : Math.min(Math.max(0, date - Date.now()), longest * 1000);
}
