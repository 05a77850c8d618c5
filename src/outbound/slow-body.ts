/** Writes a request slowly, as a client on a bad line does. */

import type { Writable } from "node:stream";
import type { Clock } from "../core/clock.js";

/** The parts that a body is written in. A shorter body has a part for each byte. */
const PARTS = 8;

/** Writes the head at once, and the parts of the body `pauseMs` apart. Ends with the connection. */
export function writeSlowly(
  socket: Pick<Writable, "write" | "destroyed">,
  { head, body, pauseMs }: { head: string; body: Uint8Array; pauseMs: number },
  clock: Clock,
): void {
  const partBytes = Math.max(1, Math.ceil(body.length / PARTS));
  const writeFrom = (start: number): void => {
    if (socket.destroyed) return;
    socket.write(body.subarray(start, start + partBytes));
    const next = start + partBytes;
    if (next < body.length) clock.setTimeout(() => writeFrom(next), pauseMs);
  };
  socket.write(head, "latin1");
  writeFrom(0);
}
