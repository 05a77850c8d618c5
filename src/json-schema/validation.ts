/** The state of one validation, and the schemas and checks that it runs through. */

import type { Json } from "../schema/types.js";
import type { Budget } from "./budget.js";

/** Steps for an object that notes names and items, and for each of them. */
const EVALUATED_STEPS = 2;
const ADD_STEPS = 6;

/** The members and items of one value that schemas have looked at, for `unevaluated…`. */
export class Evaluated {
  /** True if that is every name or every item. */
  isComplete = false;
  // Made when needed: an alternative of `anyOf` has an object of this class, and most add nothing.
  #names: Set<string> | undefined;
  #items: Set<number> | undefined;
  #budget: Budget;

  constructor(budget: Budget) {
    budget.spend(EVALUATED_STEPS);
    this.#budget = budget;
  }

  addName(name: string): void {
    this.#budget.spend(ADD_STEPS);
    this.#names ??= new Set();
    this.#names.add(name);
  }

  addItem(index: number): void {
    this.#budget.spend(ADD_STEPS);
    this.#items ??= new Set();
    this.#items.add(index);
  }

  hasName(name: string): boolean {
    return this.isComplete || this.#names?.has(name) === true;
  }

  hasItem(index: number): boolean {
    return this.isComplete || this.#items?.has(index) === true;
  }

  addAll(other: Evaluated): void {
    if (other.isComplete) this.isComplete = true;
    if (this.isComplete) return;
    for (const name of other.#names ?? []) this.addName(name);
    for (const item of other.#items ?? []) this.addItem(item);
  }
}

/** Replaces a name that the schema does not state: it came with the data. */
const UNKNOWN_NAME = "*";
const MAX_PATH = 300;

export class Validation {
  budget: Budget;
  /** Results by schema that a `$ref` means, and by object or array. */
  #results = new Map<CompiledSchema, Map<object, boolean>>();
  #keyword = "";
  /** From the place of the mistake outwards. */
  #path: string[] = [];

  constructor(budget: Budget) {
    this.budget = budget;
  }

  /** Notes the keyword that does not hold, and forgets an earlier one. Returns `false`. */
  fail(keyword: string): false {
    this.#keyword = keyword;
    this.#path = [];
    return false;
  }

  /** Notes that the mistake is within a member or an item. `undefined`: of a name of the data. */
  failWithin(name: string | undefined): false {
    this.#path.push(name ?? UNKNOWN_NAME);
    return false;
  }

  /** The mistake that was noted last. */
  get mistake(): { path: string; keyword: string } {
    const path = [...this.#path]
      .reverse()
      .map((name) => `.${name}`)
      .join("");
    return { path: path.length > MAX_PATH ? `${path.slice(0, MAX_PATH)}…` : path, keyword: this.#keyword };
  }

  /**
   * Validates with a schema that a `$ref` means. Each value is validated once: alternatives that
   * lead to the same schema would otherwise double the work at every level.
   */
  validateOnce(schema: CompiledSchema, value: Json): boolean {
    if (typeof value !== "object" || value === null) return schema.accepts(value, this);
    let results = this.#results.get(schema);
    if (results === undefined) {
      results = new Map();
      this.#results.set(schema, results);
    }
    const found = results.get(value);
    if (found !== undefined) return found || this.fail("$ref");
    this.budget.spend(8);
    const result = schema.accepts(value, this);
    results.set(value, result);
    return result;
  }
}

/** Returns whether a keyword accepts a value. Notes the mistake otherwise. */
export type Check = (value: Json, validation: Validation, evaluated: Evaluated | undefined) => boolean;

export class CompiledSchema {
  /** In the order in which they run; the first that fails ends the validation. */
  checks: Check[] = [];
  /** True if one of the checks has to know what the others have looked at. */
  isTracking = false;
  /** True for the schema `false`, which accepts nothing. */
  isFalse: boolean;

  constructor(isFalse: boolean) {
    this.isFalse = isFalse;
    if (isFalse) this.checks.push((_, validation) => validation.fail("false"));
  }

  accepts(value: Json, validation: Validation, evaluated?: Evaluated): boolean {
    const { budget } = validation;
    budget.spend(1 + 2 * this.checks.length);
    budget.enter();
    const tracked = this.isTracking ? new Evaluated(budget) : evaluated;
    let result = true;
    for (const check of this.checks) {
      result = check(value, validation, tracked);
      if (!result) break;
    }
    if (result && evaluated !== undefined && tracked !== undefined && tracked !== evaluated)
      evaluated.addAll(tracked);
    budget.leave();
    return result;
  }
}
