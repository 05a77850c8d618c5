/**
 * Decodes the chunked transfer coding of a body (RFC 9112 §7.1). Knows nothing of heads and
 * sockets.
 */

/**
 * The maximum for all chunks of a body together. Without extensions, a chunk has at most twelve
 * bytes of overhead.
 */
const MAX_EXTENSION_BYTES = 16_384;
/** The maximum number of hexadecimal digits of a chunk's size. */
const MAX_SIZE_DIGITS = 8;

const TAB = 0x09;
const CR = 0x0d;
const LF = 0x0a;
const SPACE = 0x20;
const SEMICOLON = 0x3b;
const DELETE = 0x7f;

/**
 * The state of the decoder: the next byte to expect. The last three are final. `trailer`: the body
 * is complete, and trailer fields begin, which are not read.
 */
type Place =
  | "size"
  | "extension"
  | "size LF"
  | "data"
  | "data CR"
  | "data LF"
  | "last CR"
  | "last LF"
  | "complete"
  | "trailer"
  | "broken";

export interface ChunkedBody {
  /** Begins another body. */
  readonly start: () => void;
  /**
   * Reads from `at` to the end of the body. Returns the position after the bytes that were read.
   */
  readonly read: (bytes: Buffer, at: number) => number;
  readonly state: () => "open" | "complete" | "trailer" | "broken";
  readonly stop: () => void;
}

const expectByte = (byte: number, expected: number, next: Place, otherwise: Place = "broken"): Place =>
  byte === expected ? next : otherwise;

/** Returns the value of a hexadecimal digit; −1 for any other byte. */
function digitOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

/**
 * Creates a decoder. `onData` receives the data of chunks as it arrives, and may call `stop`. Takes
 * linear time and stores nothing.
 */
export function createChunkedBody(onData: (bytes: Buffer) => void): ChunkedBody {
  let place: Place = "complete";
  /** The size of the chunk, then the number of bytes left of it. */
  let left = 0;
  let sizeDigits = 0;
  let extensionBytes = 0;

  const beginSize = (): Place => {
    left = 0;
    sizeDigits = 0;
    return "size";
  };

  const afterSizeByte = (byte: number): Place => {
    const digit = digitOf(byte);
    if (digit >= 0) {
      left = left * 16 + digit;
      sizeDigits += 1;
      return sizeDigits > MAX_SIZE_DIGITS ? "broken" : "size";
    }
    if (sizeDigits === 0) return "broken";
    if (byte === SEMICOLON) return "extension";
    return byte === CR ? "size LF" : "broken";
  };

  const afterExtensionByte = (byte: number): Place => {
    if (byte === CR) return "size LF";
    extensionBytes += 1;
    const isText = byte === TAB || (byte >= SPACE && byte !== DELETE);
    return isText && extensionBytes <= MAX_EXTENSION_BYTES ? "extension" : "broken";
  };

  const afterByte = (byte: number): Place => {
    switch (place) {
      case "size":
        return afterSizeByte(byte);
      case "extension":
        return afterExtensionByte(byte);
      case "size LF":
        return expectByte(byte, LF, left === 0 ? "last CR" : "data");
      case "data CR":
        return expectByte(byte, CR, "data LF");
      case "data LF":
        return byte === LF ? beginSize() : "broken";
      case "last CR":
        return expectByte(byte, CR, "last LF", "trailer");
      case "last LF":
        return expectByte(byte, LF, "complete");
      case "data":
      case "complete":
      case "trailer":
      case "broken":
        return place;
    }
  };

  const takeData = (bytes: Buffer, at: number): number => {
    const end = Math.min(bytes.length, at + left);
    left -= end - at;
    if (left === 0) place = "data CR";
    onData(bytes.subarray(at, end));
    return end;
  };

  const state = (): "open" | "complete" | "trailer" | "broken" =>
    place === "complete" || place === "trailer" || place === "broken" ? place : "open";

  return Object.freeze<ChunkedBody>({
    start() {
      extensionBytes = 0;
      place = beginSize();
    },

    read(bytes, start) {
      let at = start;
      while (at < bytes.length && state() === "open") {
        if (place === "data") at = takeData(bytes, at);
        else {
          place = afterByte(bytes[at] as number);
          at += 1;
        }
      }
      return at;
    },

    state,

    stop() {
      place = "broken";
    },
  });
}
