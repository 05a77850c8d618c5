/** Stage "authenticate": finds out who calls, and waits until the content is current. */

import { isPostbellError } from "../../core/errors.js";
import type { HttpRequest, HttpResponse } from "../../http/types.js";
import type { Caller } from "../auth/caller.js";
import { RestError } from "./error.js";

export type Authenticate = (request: HttpRequest) => Caller | Promise<Caller>;

export interface AuthenticationStageOptions {
  /** Brings the content up to date. Returns a promise only if the call has to wait. */
  readonly ready: (method: string) => void | Promise<void>;
  /** The next stage. */
  readonly proceed: (request: HttpRequest, caller: Caller) => HttpResponse | Promise<HttpResponse>;
  /** Responds with an error. `caller` is `undefined` if authentication failed. */
  readonly refuse: (
    request: HttpRequest,
    error: unknown,
    caller: Caller | undefined,
  ) => Promise<HttpResponse>;
}

/** The returned function is synchronous where no stage has to wait, as for a cached response. */
export function createAuthenticationStage({ ready, proceed, refuse }: AuthenticationStageOptions) {
  const admit = (request: HttpRequest, caller: Caller): HttpResponse | Promise<HttpResponse> => {
    let pending: void | Promise<void>;
    try {
      pending = ready(request.method);
    } catch (error) {
      return refuse(request, error, caller);
    }
    if (pending === undefined) return proceed(request, caller);
    return pending.then(
      () => proceed(request, caller),
      (error: unknown) => refuse(request, error, caller),
    );
  };

  const deny = (request: HttpRequest, error: unknown): Promise<HttpResponse> =>
    refuse(request, toAuthenticationError(error), undefined);

  return (request: HttpRequest, authenticate: Authenticate): HttpResponse | Promise<HttpResponse> => {
    let caller: Caller | Promise<Caller>;
    try {
      caller = authenticate(request);
    } catch (error) {
      return deny(request, error);
    }
    if (!(caller instanceof Promise)) return admit(request, caller);
    return caller.then(
      (known) => admit(request, known),
      (error: unknown) => deny(request, error),
    );
  };
}

/** The host's error stays hidden behind a 401, but a RestError and an unavailable storage pass. */
function toAuthenticationError(error: unknown): unknown {
  const isStorage = isPostbellError(error, "storage_unavailable") || isPostbellError(error, "storage_full");
  if (error instanceof RestError || isStorage) return error;
  return new RestError(401, "rest_not_authenticated", "The credentials of the request are not accepted.");
}

export const isAnonymous = ({ id, user }: Caller): boolean => id === 0 && user === null;
