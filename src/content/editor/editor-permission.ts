/** The permission that the routes of the editor share. */

import { canEditSomething } from "../auth/capabilities.js";
import { refusal } from "../rest/error.js";
import type { RestRequest } from "../rest/types.js";

/** Returns a check that refuses callers who can edit no type of post. */
export const forEditors =
  (code: string, message: string) =>
  ({ caller }: Pick<RestRequest, "caller">): void => {
    if (!canEditSomething(caller)) throw refusal(caller, code, message);
  };
