/** Values in the form PHP serialises them, in which WordPress keeps lists of classes and what it knows of an image. Data alone: objects are not read. */

export type PhpValue = string | number | boolean | null | PhpArray;
/** Keys as texts, in their order. */
export type PhpArray = ReadonlyMap<string, PhpValue>;

const MAX_DEPTH = 16;

/** `undefined` for what is no such value, or goes on after it. Linear. */
export function unserializePhp(text: string): PhpValue | undefined {
  const bytes = Buffer.from(text);
  let at = 0;

  /** Up to the next `end`, which is passed. */
  function until(end: string): string {
    const to = bytes.indexOf(end, at);
    if (to === -1 || to - at > 40) throw new SyntaxError();
    const found = bytes.toString("latin1", at, to);
    at = to + 1;
    return found;
  }

  function whole(end: string): number {
    const digits = until(end);
    if (!/^-?\d{1,16}$/.test(digits)) throw new SyntaxError();
    return Number(digits);
  }

  function expect(sign: string): void {
    if (bytes.toString("latin1", at, at + sign.length) !== sign) throw new SyntaxError();
    at += sign.length;
  }

  function quoted(): string {
    const length = whole(":");
    if (length < 0 || at + length + 3 > bytes.length) throw new SyntaxError();
    expect('"');
    const value = bytes.toString("utf8", at, at + length);
    at += length;
    expect('";');
    return value;
  }

  function list(depth: number): PhpArray {
    const count = whole(":");
    expect("{");
    const entries = new Map<string, PhpValue>();
    for (let n = 0; n < count; n += 1) {
      const key = value(depth + 1);
      if (typeof key !== "string" && typeof key !== "number") throw new SyntaxError();
      entries.set(String(key), value(depth + 1));
    }
    expect("}");
    return entries;
  }

  function value(depth: number): PhpValue {
    if (depth > MAX_DEPTH) throw new SyntaxError();
    const type = bytes.toString("latin1", at, at + 2);
    at += 2;
    if (type === "N;") return null;
    if (type === "i:") return whole(";");
    if (type === "b:") return whole(";") === 1;
    if (type === "d:") return Number(until(";"));
    if (type === "s:") return quoted();
    if (type === "a:") return list(depth);
    throw new SyntaxError();
  }

  try {
    const read = value(0);
    return at === bytes.length ? read : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The inverse of {@link unserializePhp}; plain objects and lists are arrays. */
export function serializePhp(value: unknown): string {
  if (value === null || value === undefined) return "N;";
  if (typeof value === "boolean") return `b:${value ? 1 : 0};`;
  if (typeof value === "number") return Number.isSafeInteger(value) ? `i:${value};` : `d:${value};`;
  if (typeof value === "string") return `s:${Buffer.byteLength(value)}:"${value}";`;
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  const written = entries.map(([key, entry]) => serializePhp(key) + serializePhp(entry));
  return `a:${entries.length}:{${written.join("")}}`;
}
