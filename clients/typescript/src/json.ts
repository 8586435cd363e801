/** Decimal is an exact decimal number, as the registry sends it. It has no arithmetic: pass `String(d)` to a library. */
export class Decimal {
  readonly #text: string;

  /** A Decimal has the text of a JSON number, such as "240.50". Another text is a RangeError. */
  constructor(text: string) {
    if (!/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text)) {
      throw new RangeError("a Decimal needs the text of a JSON number");
    }
    this.#text = text;
  }

  /** toString returns the digits as they were sent. */
  toString(): string {
    return this.#text;
  }

  /** toJSON returns a string, which the registry accepts in place of a number. */
  toJSON(): string {
    return this.#text;
  }

  /** A Decimal does not become a float: an operation on it as a number is a TypeError. */
  [Symbol.toPrimitive](hint: string): string {
    if (hint === "number") throw new TypeError("a Decimal is not exact as a number: use String(d)");
    return this.#text;
  }

  /** Node shows the digits. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `Decimal(${this.#text})`;
  }
}

/** deepest is the deepest nesting that parse accepts. */
const deepest = 100;

const space = /[ \t\n\r]*/y;
const number = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const literals: ReadonlyMap<string, boolean | null> = new Map([["true", true], ["false", false], ["null", null]]);

/**
 * parse reads JSON. A whole number of at most 15 digits is a number, any other number and every `quantity` a Decimal.
 * It throws a SyntaxError.
 */
export function parse(text: string): unknown {
  const reader = new Reader(text);
  const value = reader.value(0, "");
  reader.end();
  return value;
}

class Reader {
  #at = 0;

  constructor(readonly text: string) {}

  value(depth: number, name: string): unknown {
    if (depth > deepest) throw new SyntaxError("it nests too deeply");
    const first = this.#peek();
    if (first === "{") return this.#object(depth);
    if (first === "[") return this.#list(depth);
    if (first === '"') return this.#string();
    for (const [word, value] of literals) {
      if (this.text.startsWith(word, this.#at)) {
        this.#at += word.length;
        return value;
      }
    }
    return this.#number(name);
  }

  end(): void {
    if (this.#peek() !== "") throw this.#unexpected();
  }

  /** #peek returns the next character that is no space, "" at the end. */
  #peek(): string {
    space.lastIndex = this.#at;
    space.test(this.text);
    this.#at = space.lastIndex;
    return this.text.charAt(this.#at);
  }

  #take(character: string): boolean {
    if (this.#peek() !== character) return false;
    this.#at++;
    return true;
  }

  #must(character: string): void {
    if (!this.#take(character)) throw this.#unexpected();
  }

  #unexpected(): SyntaxError {
    return new SyntaxError(`unexpected text at ${this.#at}`);
  }

  #object(depth: number): unknown {
    const members: [string, unknown][] = [];
    this.#must("{");
    if (!this.#take("}")) {
      do {
        if (this.#peek() !== '"') throw this.#unexpected();
        const name = this.#string();
        this.#must(":");
        members.push([name, this.value(depth + 1, name)]);
      } while (this.#take(","));
      this.#must("}");
    }
    return Object.fromEntries(members); // a member named __proto__ stays a member
  }

  #list(depth: number): unknown[] {
    const all: unknown[] = [];
    this.#must("[");
    if (!this.#take("]")) {
      do all.push(this.value(depth + 1, ""));
      while (this.#take(","));
      this.#must("]");
    }
    return all;
  }

  #string(): string {
    let end = this.#at;
    do {
      end = this.text.indexOf('"', end + 1);
      if (end < 0) throw this.#unexpected();
    } while (this.#escaped(end));
    const quoted = this.text.slice(this.#at, end + 1);
    this.#at = end + 1;
    return JSON.parse(quoted) as string;
  }

  /** #escaped reports whether an odd number of backslashes stands before a place. */
  #escaped(place: number): boolean {
    let begin = place;
    while (this.text.charAt(begin - 1) === "\\") begin--;
    return (place - begin) % 2 === 1;
  }

  #number(name: string): number | Decimal {
    number.lastIndex = this.#at;
    const match = number.exec(this.text);
    if (match === null) throw this.#unexpected();
    this.#at = number.lastIndex;
    const [digits, fraction, exponent] = match;
    const whole = fraction === undefined && exponent === undefined && digits.length <= 15;
    return whole && name !== "quantity" ? Number(digits) : new Decimal(digits);
  }
}

/** encode writes JSON. Numbers are whole or Decimal; another number is a TypeError. It leaves undefined members out. */
export function encode(value: unknown): string {
  if (value === null || typeof value === "boolean" || typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") {
    if (!Number.isSafeInteger(value)) throw new TypeError("a fraction is not exact as a number: use Decimal");
    return String(value);
  }
  if (value instanceof Decimal) return value.toString();
  if (Array.isArray(value)) return `[${value.map(encode).join(",")}]`;
  if (typeof value === "object" && [Object.prototype, null].includes(Object.getPrototypeOf(value) as object | null)) {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${encode(member)}`).join(",")}}`;
  }
  throw new TypeError(`JSON has no ${typeof value === "object" ? "such object" : typeof value}`);
}
