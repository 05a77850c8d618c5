/** The port to what remembers the events of a receiver beyond its process. */

/**
 * Remembers which events were handled, for all processes of a receiver. `pgReceived`,
 * `sqliteReceived`, `redisReceived` and `memoryReceived` of `postbell/received` return one.
 *
 * Each method is atomic, and may be repeated if its result was lost. Times are epoch milliseconds.
 */
export interface ReceivedEvents {
  /**
   * Takes an event. `new`: it belongs to the caller until `leaseUntil`, or until it confirms or
   * releases it. `in_flight`: another caller has it. `done`: it was confirmed.
   */
  claim(request: { id: string; now: number; leaseUntil: number }): Promise<"new" | "in_flight" | "done">;
  /** Marks an event as handled until `keepUntil`. */
  confirm(request: { id: string; now: number; keepUntil: number }): Promise<void>;
  /** Gives a claim back; the next claim of the event returns `new`. Other claims are left alone. */
  release(request: { id: string; leaseUntil: number }): Promise<void>;
  /** Returns the cursor that was written last for a feed; `undefined` before the first one. */
  readCursor(feed: string): Promise<string | undefined>;
  /** Remembers how far a feed was read. */
  writeCursor(request: { feed: string; cursor: string }): Promise<void>;
}
