/**
 * Bounds how many other records the contents of one response show. Without it, a page of thirty
 * posts that each hold twenty lists of a hundred posts would render 60 000 records.
 */

/** Dynamic blocks, short codes and records in lists that the contents of one response show. */
const MAX_SHOWN = 5_000;

export class RenderBudget {
  #left: number;
  #taken = 0;
  #refused = 0;

  constructor(limit = MAX_SHOWN) {
    this.#left = limit;
  }

  /** Returns how many of `count` may be shown, and counts them. */
  take(count: number): number {
    const taken = Math.min(count, this.#left);
    this.#left -= taken;
    this.#taken += taken;
    this.#refused += count - taken;
    return taken;
  }

  /** The part of `records` that may be shown, from the first. */
  takeOf<T>(records: T[]): T[] {
    const taken = this.take(records.length);
    return taken === records.length ? records : records.slice(0, taken);
  }

  /** How much was left out. A content is cached if nothing was, or if it alone used all of it. */
  get refused(): number {
    return this.#refused;
  }

  get isUntouched(): boolean {
    return this.#taken === 0;
  }
}
