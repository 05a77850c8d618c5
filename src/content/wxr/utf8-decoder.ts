/** Decodes the bytes of an XML file, which must be UTF-8. */

/**
 * Creates a decoder. It takes the bytes in order, split anywhere; `null` is the end. A byte order
 * mark is removed.
 *
 * @throws the error that `fail` returns, for UTF-16, for bytes that are not UTF-8, and for NUL.
 */
export function createUtf8Decoder(fail: (message: string) => Error): (bytes: Uint8Array | null) => string {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let head: Uint8Array | null = new Uint8Array();

  const decode = (bytes: Uint8Array | undefined): string => {
    let text: string;
    try {
      text = bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true });
    } catch {
      throw fail("it is not UTF-8");
    }
    if (text.includes("\0")) throw fail("it contains NUL, which XML does not allow");
    return text;
  };

  return (bytes) => {
    let given = bytes;
    if (head !== null) {
      const start: Uint8Array = bytes === null ? head : Buffer.concat([head, bytes]);
      head = start;
      if (bytes !== null && start.length < 4) return "";
      head = null;
      if (isUtf16(start)) throw fail("it is UTF-16; save it as UTF-8");
      if (bytes === null) return decode(start) + decode(undefined);
      given = start;
    }
    return given === null ? decode(undefined) : decode(given);
  };
}

/**
 * Checks for a byte order mark, and for a zero next to the first character, which is ASCII in every
 * XML file.
 */
const isUtf16 = ([first, second]: Uint8Array): boolean =>
  (first === 0xff && second === 0xfe) ||
  (first === 0xfe && second === 0xff) ||
  (first === 0 && second !== 0 && second !== undefined) ||
  (first !== 0 && second === 0);
