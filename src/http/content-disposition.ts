/**
 * Reads the name of a file from a `Content-Disposition` header, and the boundary from a
 * `Content-Type`: parameters by the grammar of RFC 9110. Pure.
 */

/** Longer headers are refused. */
const MAX_LENGTH = 8_192;

/**
 * The parameters behind the first `;`, by their names as written. A value is a token or a quoted
 * string, taken out of its quotes; blanks around are left out. `undefined` where the text is
 * malformed: an unclosed quote, something behind a closed one, a control character, a name twice,
 * or too long. Linear.
 */
export function readParameters(header: string): Map<string, string> | undefined {
  if (header.length > MAX_LENGTH || hasControl(header)) return undefined;
  const parameters = new Map<string, string>();
  let at = header.indexOf(";");
  let equals = header.indexOf("=");
  while (at !== -1 && at < header.length) {
    at += 1;
    // Looked for once for all the attributes without a value that stand before it.
    if (equals !== -1 && equals < at) equals = header.indexOf("=", at);
    if (equals === -1) break;
    const semicolon = header.indexOf(";", at);
    if (semicolon !== -1 && semicolon < equals) {
      at = semicolon;
      continue;
    }
    const name = header.slice(at, equals).trim();
    const value = readValue(header, equals + 1);
    if (value === undefined || parameters.has(name)) return undefined;
    parameters.set(name, value.text);
    at = value.end;
  }
  return parameters;
}

/** The value that begins at `start`, and where the next `;` is. */
function readValue(header: string, start: number): { text: string; end: number } | undefined {
  let at = start;
  while (header[at] === " " || header[at] === "\t") at += 1;
  if (header[at] !== '"') {
    const semicolon = header.indexOf(";", at);
    const end = semicolon === -1 ? header.length : semicolon;
    return { text: header.slice(at, end).trim(), end };
  }
  let text = "";
  for (at += 1; at < header.length; at += 1) {
    const character = header.charAt(at);
    if (character === '"') return closed(header, at + 1, text);
    // Before anything else a backslash is one: some clients send the path of the file.
    if (character === "\\" && /["\\]/.test(header.charAt(at + 1))) at += 1;
    text += header.charAt(at);
  }
  return undefined;
}

function closed(header: string, start: number, text: string): { text: string; end: number } | undefined {
  const semicolon = header.indexOf(";", start);
  const end = semicolon === -1 ? header.length : semicolon;
  return header.slice(start, end).trim() === "" ? { text, end } : undefined;
}

function hasControl(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if ((code < 32 && code !== 9) || code === 127) return true;
  }
  return false;
}

/**
 * Reads the file name from a header such as `attachment; filename="heart.png"`. `filename*` (RFC
 * 8187) wins over `filename`. Returns `undefined` if the name is missing or the header is
 * malformed.
 *
 * As in WordPress, the kind of disposition does not matter, and parameter names are in lower case.
 * Bytes beyond ASCII are decoded as UTF-8 if they are valid UTF-8.
 */
export function readFileName(header: string): string | undefined {
  const parameters = readParameters(header);
  const extended = parameters?.get("filename*");
  const plain = parameters?.get("filename");
  const name = extended === undefined ? plain && utf8Of(plain) : decodeExtended(extended);
  return name === "" ? undefined : name;
}

/** A server hands over each byte of a header as one character. */
function utf8Of(text: string): string {
  if (!/[\u0080-\u00ff]/.test(text) || /[\u0100-\uffff]/.test(text)) return text;
  return decodeUtf8(Buffer.from(text, "latin1")) ?? text;
}

function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * `UTF-8'en'na%C3%AFve.png`. Further apostrophes are of the name, though RFC 8187 would have them
 * encoded: scripts do not.
 */
function decodeExtended(text: string): string | undefined {
  const encoded = /^utf-8'[^']*'(.*)$/i.exec(text)?.[1];
  if (encoded === undefined) return undefined;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}
