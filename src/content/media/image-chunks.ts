/** Shared code of the walks over the chunks of an image file. Pure. */

/**
 * Steps of a walk, which nothing interrupts. Honest files of 33 MB take 130,000 at most, a GIF in
 * blocks of 255 bytes; of the smallest chunks that the forms allow it could be millions.
 */
export const MAX_CHUNKS = 1_000_000;

/** The four characters that name a chunk, as the number that stands in the file. */
export const chunkType = (name: string): number => Buffer.from(name, "latin1").readUInt32BE(0);
