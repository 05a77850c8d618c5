/** Parses the head of an HTTP/1.1 response (RFC 9112): its status, and how its body ends. Pure. */

/** How the end of a body is found (RFC 9112 §6.3): by its length in bytes, by its chunks, or by the end of the connection. */
export type Framing = number | "chunked" | "close";

export interface ResponseHead {
  readonly status: number;
  /** The header lines as they came, each with its line break. {@link parseHeaders} reads them. */
  readonly headerLines: string;
  readonly framing: Framing;
  /** Whether the endpoint keeps the connection open for another request. */
  readonly isKeptAlive: boolean;
  /** Seconds for which it says it keeps an idle connection. */
  readonly keepAliveSeconds: number | undefined;
}

/**
 * A status line and header lines, and nothing else: no folded lines, no line feed on its own, no control characters, no blank before a colon.
 * Whatever is read differently by different parsers is refused.
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

/** Calls `visit` with the name, as it came, and the value of each line. */
function eachHeader(lines: string, visit: (name: string, value: string) => void): void {
  for (let start = 0; start < lines.length; ) {
    const end = lines.indexOf("\r\n", start);
    const colon = lines.indexOf(":", start);
    visit(lines.slice(start, colon), lines.slice(colon + 1, end).trim());
    start = end + 2;
  }
}

/** `undefined` where two lines disagree on the length of the body, or may. */
function fieldsOf(lines: string): Fields | undefined {
  const fields: Fields = { length: undefined, coding: undefined, connection: "", keepAlive: undefined };
  let isClear = true;
  eachHeader(lines, (name, value) => {
    // Most headers do not matter here, and the length of their names shows it.
    if (name.length !== 10 && name.length !== 14 && name.length !== 17) return;
    const key = name.toLowerCase();
    if (key === "connection")
      fields.connection =
        fields.connection === "" ? value.toLowerCase() : `${fields.connection},${value.toLowerCase()}`;
    else if (key === "keep-alive") fields.keepAlive = value;
    else if (key === "content-length") {
      isClear &&= fields.length === undefined;
      fields.length = value;
    } else if (key === "transfer-encoding") {
      fields.coding = fields.coding === undefined ? value : `${fields.coding},${value}`;
    }
  });
  return isClear && (fields.length === undefined || fields.coding === undefined) ? fields : undefined;
}

const tokensOf = (list: string): readonly string[] => list.split(",").map((token) => token.trim());

/** `undefined` where the length is no number. */
function framingOf(status: number, { length, coding }: Fields): Framing | undefined {
  if (length !== undefined && !LENGTH.test(length)) return undefined;
  if (status < 200 || status === 204 || status === 304) return 0;
  if (coding !== undefined) return tokensOf(coding).at(-1)?.toLowerCase() === "chunked" ? "chunked" : "close";
  return length === undefined ? "close" : Number(length);
}

/** HTTP/1.1 keeps a connection unless it says `close`, HTTP/1.0 only where it says `keep-alive` (RFC 9112 §9.3). */
function isConnectionKept(isHttp11: boolean, connection: string): boolean {
  if (connection === "" || connection === "keep-alive") return isHttp11 || connection !== "";
  const options = tokensOf(connection);
  return !options.includes("close") && (isHttp11 || options.includes("keep-alive"));
}

/** `text`: everything up to the empty line and its line break, a character per byte. `undefined` where it is no head of a response. */
export function parseHead(text: string): ResponseHead | undefined {
  const match = HEAD.exec(text);
  if (match === null) return undefined;
  const status = Number(match[2]);
  const headerLines = match[3] ?? "";
  const fields = fieldsOf(headerLines);
  const framing = fields && framingOf(status, fields);
  if (fields === undefined || framing === undefined) return undefined;
  const { connection, keepAlive } = fields;
  const isKeptAlive = isConnectionKept(match[1] === "1", connection);
  const timeout = keepAlive === undefined ? undefined : KEEP_ALIVE_TIMEOUT.exec(keepAlive)?.[1];
  return {
    status,
    headerLines,
    framing,
    isKeptAlive: isKeptAlive && framing !== "close",
    keepAliveSeconds: timeout === undefined ? undefined : Number(timeout),
  };
}

/** Names in lower case; several values of one name are joined by `, `. */
export function parseHeaders(lines: string): Record<string, string> {
  // No prototype: the endpoint chooses the names.
  const headers: Record<string, string> = Object.create(null) as Record<string, string>;
  eachHeader(lines, (name, value) => {
    const key = name.toLowerCase();
    const earlier = headers[key];
    headers[key] = earlier === undefined ? value : `${earlier}, ${value}`;
  });
  return headers;
}
