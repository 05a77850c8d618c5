/** Reads a stream to its end, up to a limit. */

/** The largest possible notification has 16 MiB. This leaves room for its head. */
const MAX_REQUEST_BYTES = 17_825_792;

export const TOO_LARGE = "The request is larger than 17 MiB.";

/** Returns `undefined` if the stream has more bytes than the limit. The rest is then not read. */
export async function readAll(stream: AsyncIterable<Uint8Array>): Promise<Buffer | undefined> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of stream) {
    length += piece.length;
    if (length > MAX_REQUEST_BYTES) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
