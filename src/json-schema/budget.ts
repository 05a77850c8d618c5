/** Limits the work of one validation, in steps, so that the limit is the same on every machine. */

/** Thrown when a validation costs more than its budget. */
export class TooComplexError extends Error {
  override readonly name = "TooComplexError";
}

/**
 * The budget of a validation has a fixed part, and a part for each character of the data as JSON.
 * A step takes about 10 to 40 ns.
 */
const STEPS = 1_000_000;
const STEPS_PER_CHARACTER = 2;

/**
 * The levels of schemas within schemas, with their references. Each takes two or three frames of
 * the stack. The data has at most 200 levels.
 */
const MAX_DEPTH = 1_200;

export class Budget {
  /** The steps that the validation may take. */
  readonly limit: number;
  #spent = 0;
  #depth = 0;

  /** @param length the characters of the data as JSON. */
  constructor(length: number) {
    this.limit = STEPS + STEPS_PER_CHARACTER * length;
  }

  get spent(): number {
    return this.#spent;
  }

  /** @throws {TooComplexError} if fewer steps are left. */
  spend(steps: number): void {
    this.#spent += steps;
    if (this.#spent > this.limit) throw new TooComplexError();
  }

  /** Counts a schema within a schema. @throws {TooComplexError} at too many levels. */
  enter(): void {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw new TooComplexError();
  }

  leave(): void {
    this.#depth -= 1;
  }
}
