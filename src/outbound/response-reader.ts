/**
 * Reads the responses of one connection from its bytes, one response at a time. Knows nothing of
 * sockets.
 */

import { parseHead, type ResponseHead } from "./http-message.js";

/** Receives the parts of a response while it is read. */
export interface ResponseSink {
  /**
   * Called once with the head of the final response, before the first part of the body. May call
   * {@link ResponseReader.stop}.
   */
  onHead: (head: ResponseHead) => void;
  /** Called with each part of the body. May call {@link ResponseReader.stop}. */
  onBody: (bytes: Buffer) => void;
}

/**
 * `complete`: the whole response was read, and nothing follows it. `excess`: bytes follow it, so
 * the connection must not be used again.
 */
export type ReadState = "open" | "complete" | "excess" | "broken";

export type ReadProblem = "BAD_RESPONSE" | "HEADERS_TOO_LARGE" | "TOO_MANY_INTERIM_RESPONSES";

export interface ResponseReader {
  /** Begins another response. */
  start: () => void;
  read: (bytes: Buffer) => ReadState;
  /** Reports the end of the connection. Returns `complete` if that is how the body ends. */
  end: () => ReadState;
  /** Stops reading. */
  stop: () => void;
  /** The reason for the state `broken`. */
  problem: () => ReadProblem;
}

const MAX_HEAD_BYTES = 16_384;
/**
 * Interim responses do not count as part of the head. Without a limit an endpoint could keep the
 * reader busy until the deadline.
 */
const MAX_INTERIM_RESPONSES = 32;

const HEAD_START = Buffer.from("HTTP/1.");
const EMPTY_LINE = Buffer.from("\r\n\r\n");

/** True if `bytes` can be the start of a response: only then is it worth waiting for more. */
const mayBegin = (bytes: Buffer): boolean => {
  const length = Math.min(bytes.length, HEAD_START.length);
  return bytes.compare(HEAD_START, 0, length, 0, length) === 0;
};

/**
 * Creates a reader that is strict where parsers differ: all parsers read its input alike. Takes
 * linear time and stores no more than a head (16 KiB).
 *
 * Trailer fields are not read: the body is complete before them, and the state is `excess`.
 */
export function createResponseReader(sink: ResponseSink): ResponseReader {
  let stage: "head" | "body" | "chunks" | "until close" | "over" = "over";
  let state: ReadState = "complete";
  let problem: ReadProblem = "BAD_RESPONSE";
  let interimResponses = 0;
  /** The beginning of a head that arrives in several parts. */
  let partOfHead: Buffer | undefined;
  let partLength = 0;
  /** The bytes left of a body with a known length. */
  let left = 0;

  const finish = (ended: ReadState): void => {
    stage = "over";
    state = ended;
    partOfHead = undefined;
    partLength = 0;
  };

  const fail = (reason: ReadProblem): void => {
    problem = reason;
    finish("broken");
  };

  const chunks = createChunkedBody((bytes) => sink.onBody(bytes));

  const beginBody = ({ framing }: ResponseHead): void => {
    if (framing === "close") stage = "until close";
    else if (framing === "chunked") {
      stage = "chunks";
      chunks.start();
    } else if (framing === 0) finish("complete");
    else {
      stage = "body";
      left = framing;
    }
  };

  const takeHead = (text: string): void => {
    const head = parseHead(text);
    // Postbell never requests another protocol.
    if (head === undefined || head.status === 101) fail("BAD_RESPONSE");
    else if (head.status >= 200) {
      sink.onHead(head);
      if (state === "open") beginBody(head);
    } else if (++interimResponses > MAX_INTERIM_RESPONSES) fail("TOO_MANY_INTERIM_RESPONSES");
  };

  /** Stores the bytes of a head, up to its end or its limit. Returns the position after them. */
  const collectHead = (bytes: Buffer, at: number): number => {
    partOfHead ??= Buffer.allocUnsafe(MAX_HEAD_BYTES);
    const before = partLength;
    partLength += bytes.copy(partOfHead, before, at);
    const part = partOfHead.subarray(0, partLength);
    const end = part.indexOf(EMPTY_LINE, Math.max(0, before - EMPTY_LINE.length + 1));
    if (end >= 0) {
      const length = end + EMPTY_LINE.length;
      partOfHead = undefined;
      partLength = 0;
      takeHead(part.toString("latin1", 0, length));
      return at + length - before;
    }
    if (!mayBegin(part)) fail("BAD_RESPONSE");
    else if (partLength === MAX_HEAD_BYTES) fail("HEADERS_TOO_LARGE");
    return bytes.length;
  };

  const readHead = (bytes: Buffer, at: number): number => {
    const end = partLength > 0 ? -1 : bytes.indexOf(EMPTY_LINE, at) + EMPTY_LINE.length;
    if (end < EMPTY_LINE.length || end - at > MAX_HEAD_BYTES) return collectHead(bytes, at);
    takeHead(bytes.toString("latin1", at, end));
    return end;
  };

  const readBody = (bytes: Buffer, at: number): number => {
    const end = Math.min(bytes.length, at + left);
    left -= end - at;
    sink.onBody(bytes.subarray(at, end));
    if (left === 0 && state === "open") finish("complete");
    return end;
  };

  const readChunks = (bytes: Buffer, at: number): number => {
    const end = chunks.read(bytes, at);
    const ended = chunks.state();
    if (state !== "open" || ended === "open") return end;
    if (ended === "broken") fail("BAD_RESPONSE");
    else finish(ended === "trailer" ? "excess" : "complete");
    return end;
  };

  const readUntilClose = (bytes: Buffer, at: number): number => {
    sink.onBody(at === 0 ? bytes : bytes.subarray(at));
    return bytes.length;
  };

  return Object.freeze<ResponseReader>({
    start() {
      stage = "head";
      state = "open";
      interimResponses = 0;
    },

    read(bytes) {
      let at = 0;
      while (at < bytes.length && stage !== "over") {
        if (stage === "head") at = readHead(bytes, at);
        else if (stage === "body") at = readBody(bytes, at);
        else if (stage === "chunks") at = readChunks(bytes, at);
        else at = readUntilClose(bytes, at);
      }
      if (at < bytes.length && state === "complete") state = "excess";
      return state;
    },

    end() {
      if (stage === "until close") finish("complete");
      else if (stage !== "over") fail("BAD_RESPONSE");
      return state;
    },

    stop() {
      if (stage === "chunks") chunks.stop();
      finish("broken");
    },

    problem: () => problem,
  });
}

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
  start: () => void;
  /**
   * Reads from `at` to the end of the body. Returns the position after the bytes that were read.
   */
  read: (bytes: Buffer, at: number) => number;
  state: () => "open" | "complete" | "trailer" | "broken";
  stop: () => void;
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
 * Creates a decoder of the chunked transfer coding (RFC 9112 §7.1). `onData` receives the data of
 * chunks as it arrives, and may call `stop`. Takes linear time and stores nothing.
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
