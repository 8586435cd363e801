/** Message is a message of an event stream. A heartbeat is empty. */
export interface Message {
  event: string;
  id: string;
  data: string;
  /** retry is in milliseconds. */
  retry: number | undefined;
}

/** mostMessage bounds the bytes of one message. */
export const mostMessage = 8 << 20;

/**
 * messages reads an event stream, whose read returns undefined at the end. It leaves out a message without its end. It
 * throws a RangeError if a message is too long.
 */
export async function* messages(read: () => Promise<Uint8Array | undefined>): AsyncGenerator<Message> {
  let fields = new Map<string, string[]>();
  let size = 0;
  for await (const line of lines(read)) {
    size += line.length;
    if (size > mostMessage) throw tooLong();
    if (line.length > 0) {
      const [, name = "", value = ""] = /^([^:]*)(?:: ?)?(.*)$/s.exec(new TextDecoder().decode(line)) ?? [];
      fields.set(name, fields.get(name) ?? []).get(name)?.push(value);
      continue;
    }
    const last = (name: string): string => fields.get(name)?.at(-1) ?? "";
    yield { event: last("event"), id: last("id"), data: (fields.get("data") ?? []).join("\n"),
      retry: /^\d{1,9}$/.test(last("retry")) ? Number(last("retry")) : undefined };
    fields = new Map();
    size = 0;
  }
}

/** lines reads lines, without their ends. It leaves out a line without its end. */
async function* lines(read: () => Promise<Uint8Array | undefined>): AsyncGenerator<Uint8Array> {
  let begun: Uint8Array[] = []; // the parts of the line that has no end yet
  let size = 0;
  for (let chunk = await read(); chunk !== undefined; chunk = await read()) {
    let begin = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, begin)) {
      const line = joined([...begun, chunk.subarray(begin, end)]);
      yield line.at(-1) === carriageReturn ? line.subarray(0, -1) : line;
      [begun, size, begin] = [[], 0, end + 1];
    }
    begun.push(chunk.subarray(begin));
    size += chunk.length - begin;
    if (size > mostMessage) throw tooLong();
  }
}

const newline = 0x0a;
const carriageReturn = 0x0d;

function tooLong(): RangeError {
  return new RangeError(`a message of the stream has more than ${mostMessage} bytes`);
}

/** joined joins parts. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
