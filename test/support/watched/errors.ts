/**
 * Stands in for `src/core/errors.ts` in the tests: each error is searched for secrets as it is
 * made.
 */

import { PostbellError as Original } from "../../../src/core/errors.js";
import { fileLeaks } from "../leak-check.js";

export * from "../../../src/core/errors.js";

export class PostbellError extends Original {
  static {
    // It takes the place of the class, and so has its instances.
    Object.defineProperty(PostbellError, Symbol.hasInstance, {
      value(this: unknown, thrown: unknown): boolean {
        const has = Function.prototype[Symbol.hasInstance];
        return this === PostbellError ? thrown instanceof Original : has.call(this, thrown);
      },
    });
  }

  constructor(...given: ConstructorParameters<typeof Original>) {
    super(...given);
    fileLeaks.note(`an error, ${this.code}`, [this.message, this.field]);
  }
}
