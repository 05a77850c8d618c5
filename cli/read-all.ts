/** The bytes of a stream, up to a bound. */

/** The largest notification that a sender can be set to make is 16 MiB; this leaves room for its head. */
const MAX_REQUEST_BYTES = 17_825_792;

export const TOO_LARGE = "The request is larger than 17 MiB.";

/** `undefined`, and the rest is not read, where there is more. */
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
