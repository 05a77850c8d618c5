/** Parses the head of an HTTP/1.1 response (RFC 9112): its status, and how its body ends. Pure. */

/**
 * How the end of a body is found (RFC 9112 §6.3): by its length in bytes, by its chunks, or by the
 * end of the connection.
 */
export type Framing = number | "chunked" | "close";

export interface ResponseHead {
  readonly status: number;
  /** The raw header lines, each with its line break. {@link parseHeaders} parses them. */
  readonly headerLines: string;
  readonly framing: Framing;
  /** True if the endpoint keeps the connection open for another request. */
  readonly isKeptAlive: boolean;
  /** The seconds for which the endpoint keeps an idle connection open, by its own words. */
  readonly keepAliveSeconds: number | undefined;
}

/**
 * A status line and header lines, and nothing else: no folded lines, no bare line feed, no control
 * characters, no space before a colon. Parsers are known to read those differently.
 */
const HEAD =
  /^HTTP\/1\.([01]) ([1-9][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?\r\n((?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*)\r\n$/;

/** Fifteen digits stay exact as a number. */
const LENGTH = /^[0-9]{1,15}$/;
const KEEP_ALIVE_TIMEOUT = /(?:^|[,;\s])timeout=([0-9]{1,6})/i;

/** The headers that decide about the connection. */
interface Fields {
  length: string | undefined;
  coding: string | undefined;
  connection: string;
  keepAlive: string | undefined;
}

/**
 * Removes surrounding spaces and tabs. Not `trim`, which also removes bytes that belong to a value
 * in HTTP, such as 0xA0.
 */
function trimBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && (text[start] === " " || text[start] === "\t")) start += 1;
  while (end > start && (text[end - 1] === " " || text[end - 1] === "\t")) end -= 1;
  return text.slice(start, end);
}

/** Calls `visit` for each line, with the raw name and everything after the colon. */
function eachHeader(lines: string, visit: (name: string, rest: string) => void): void {
  for (let start = 0; start < lines.length; ) {
    const end = lines.indexOf("\r\n", start);
    const colon = lines.indexOf(":", start);
    visit(lines.slice(start, colon), lines.slice(colon + 1, end));
    start = end + 2;
  }
}

/** True if parsers can disagree whether a tab belongs to the value. */
const hasUnclearTab = (rest: string, value: string): boolean => rest.includes("\t", rest.indexOf(value));

/**
 * Returns the headers that decide about the connection. Returns `undefined` if two lines, or two
 * parsers, can disagree on the length of the body.
 */
function fieldsOf(lines: string): Fields | undefined {
  const fields: Fields = { length: undefined, coding: undefined, connection: "", keepAlive: undefined };
  let isClear = true;
  eachHeader(lines, (name, rest) => {
    // Most headers do not matter here, and the length of their names shows it.
    if (name.length !== 10 && name.length !== 14 && name.length !== 17) return;
    const key = name.toLowerCase();
    const value = trimBlanks(rest);
    if (key === "connection")
      fields.connection =
        fields.connection === "" ? value.toLowerCase() : `${fields.connection},${value.toLowerCase()}`;
    else if (key === "keep-alive") fields.keepAlive = value;
    else if (key === "content-length") {
      isClear &&= fields.length === undefined && !hasUnclearTab(rest, value);
      fields.length = value;
    } else if (key === "transfer-encoding") {
      isClear &&= !hasUnclearTab(rest, value);
      fields.coding = fields.coding === undefined ? value : `${fields.coding},${value}`;
    }
  });
  return isClear && (fields.length === undefined || fields.coding === undefined) ? fields : undefined;
}

const tokensOf = (list: string): readonly string[] => list.split(",").map(trimBlanks);

/**
 * Returns `undefined` if the length is not a number, or a coding is empty: after `chunked,` some
 * parsers expect chunks and some do not.
 */
function framingOf(status: number, { length, coding }: Fields): Framing | undefined {
  if (length !== undefined && !LENGTH.test(length)) return undefined;
  const codings = coding === undefined ? [] : tokensOf(coding);
  if (codings.includes("")) return undefined;
  if (status < 200 || status === 204 || status === 304) return 0;
  const last = codings.at(-1);
  if (last !== undefined) return last.toLowerCase() === "chunked" ? "chunked" : "close";
  return length === undefined ? "close" : Number(length);
}

/**
 * HTTP/1.0 has no transfer codings: a connection that used one is not reused (RFC 9112 section
 * 6.1).
 */
function keepsAlive(isNewer: boolean, framing: Framing, connection: string): boolean {
  // The common cases.
  if (isNewer && (connection === "" || connection === "keep-alive")) return true;
  const options = tokensOf(connection);
  return !options.includes("close") && (isNewer || (framing !== "chunked" && options.includes("keep-alive")));
}

/**
 * Parses a head: the text up to the empty line and its line break, one character per byte. Returns
 * `undefined` for any other text.
 */
export function parseHead(text: string): ResponseHead | undefined {
  const match = HEAD.exec(text);
  if (match === null) return undefined;
  const status = Number(match[2]);
  const headerLines = match[3] ?? "";
  const fields = fieldsOf(headerLines);
  const framing = fields && framingOf(status, fields);
  if (fields === undefined || framing === undefined) return undefined;
  const { connection, keepAlive } = fields;
  const timeout = keepAlive === undefined ? undefined : KEEP_ALIVE_TIMEOUT.exec(keepAlive)?.[1];
  return {
    status,
    headerLines,
    framing,
    isKeptAlive: framing !== "close" && keepsAlive(match[1] === "1", framing, connection),
    keepAliveSeconds: timeout === undefined ? undefined : Number(timeout),
  };
}

/** Names in lower case; several values of one name are joined by `, `. */
export function parseHeaders(lines: string): Record<string, string> {
  // No prototype: the endpoint chooses the names.
  const headers: Record<string, string> = Object.create(null) as Record<string, string>;
  eachHeader(lines, (name, rest) => {
    const key = name.toLowerCase();
    const value = trimBlanks(rest);
    const earlier = headers[key];
    headers[key] = earlier === undefined ? value : `${earlier}, ${value}`;
  });
  return headers;
}
