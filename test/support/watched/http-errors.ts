/**
 * Stands in for `src/http/errors.ts` in the tests: each error is searched for secrets as it is
 * made.
 */

import { HttpError as Original } from "../../../src/http/errors.js";
import { fileLeaks } from "../leak-check.js";

export * from "../../../src/http/errors.js";

export class HttpError extends Original {
  constructor(...given: ConstructorParameters<typeof Original>) {
    super(...given);
    fileLeaks.note(`an error, ${this.code}`, [this.message, this.field, this.headers]);
  }
}
