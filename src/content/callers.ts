/**
 * Finds the caller of a request: the user that the host authenticated, with the permissions of
 * that user's roles.
 */

import { isPromiseLike } from "../core/promise-like.js";
import type { HttpRequest } from "../http/types.js";
import type { Caller } from "./auth/caller.js";
import type { AuthenticateContent } from "./options.js";
import type { User } from "./records/records.js";
import { RestError } from "./rest/error.js";
import type { Users } from "./users/users.js";

export interface Callers {
  readonly anonymous: Caller;
  /** @throws RestError 401 if there is no user with this id */
  readonly load: (id: number) => Promise<Caller>;
  /**
   * Asks the host who makes a request. Synchronous for an anonymous caller whom the host knows at
   * once.
   */
  readonly authenticate: (request: HttpRequest) => Caller | Promise<Caller>;
}

export interface CallersOptions {
  readonly users: Pick<Users, "get">;
  readonly callerOf: (user: User | null) => Caller;
  readonly authenticate: AuthenticateContent;
}

export function createCallers({ users, callerOf, authenticate }: CallersOptions): Callers {
  const anonymous = callerOf(null);

  const load = async (id: number): Promise<Caller> => {
    const user = await users.get(id);
    if (user === null) throw unauthorized();
    return callerOf(user);
  };

  const resolve = (known: { readonly id: number } | null | undefined): Caller | Promise<Caller> =>
    known === null || known === undefined ? anonymous : load(known.id);

  return {
    anonymous,
    load,
    authenticate(request) {
      const known = authenticate(request);
      return isPromiseLike(known) ? Promise.resolve(known).then(resolve) : resolve(known);
    },
  };
}

/** The same for an unknown id and a broken credential, so that neither can be guessed. */
const unauthorized = (): RestError =>
  new RestError(401, "rest_not_logged_in", "The credentials of the request are not valid.");
