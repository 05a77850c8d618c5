/**
 * Finds the caller of a request: the user that the host authenticated, with the permissions of
 * that user's roles.
 */

import { PostbellError } from "../core/errors.js";
import type { Logger } from "../core/logger.js";
import { isPromiseLike } from "../core/next-turn.js";
import type { HttpRequest } from "../http/types.js";
import { type Caller, createAuthorization } from "./auth/caller.js";
import type { Roles } from "./auth/roles.js";
import type { ContentModel } from "./records/content-model.js";
import type { User } from "./records/records.js";
import type { ApplicationPassword } from "./repository/small-records.js";
import { RestError } from "./rest/error.js";

type Awaitable<T> = T | PromiseLike<T>;

/**
 * Refuses a request whose credentials the host does not accept, such as one with a stale nonce. The
 * response is WordPress's error `{ code, message, data: { status } }`.
 *
 * @example
 * ```ts
 * // WordPress's clients then get a new nonce and repeat the request.
 * const staleNonce: AuthenticationRefusal = {
 *   status: 403,
 *   code: "rest_cookie_invalid_nonce",
 *   message: "Cookie check failed",
 * };
 * ```
 */
export interface AuthenticationRefusal {
  /** 400 to 499. */
  readonly status: number;
  /** Tells a program the reason. At most 100 characters. */
  readonly code: string;
  /** Tells a person the reason. At most 1000 characters. The client sees it: no secrets. */
  readonly message: string;
}

/**
 * Identifies the user who makes a request. Returns the user's `id`, `null` for an anonymous
 * request, or a refusal, which becomes the response.
 *
 * If it throws, the response is 401 without the reason. If it returns anything else, the response
 * is 500 and the mistake is logged.
 *
 * @example
 * ```ts
 * async function authenticate({ headers }: HttpRequest) {
 *   const session = await findSession(headers["cookie"]);
 *   const nonce = headers["x-wp-nonce"];
 *   // Without a nonce, another site's page may have sent the cookie.
 *   if (session === null || nonce === undefined) return null;
 *   return session.hasNonce(nonce) ? { id: session.userId } : staleNonce;
 * }
 * ```
 */
export type AuthenticateContent = (
  request: HttpRequest,
) => Awaitable<{ readonly id: number } | AuthenticationRefusal | null | undefined>;

/** The members of a password that its user chooses. The name has 1 to 255 characters. */
export type ApplicationPasswordInput = Pick<ApplicationPassword, "name" | "appId">;

/** Verifies application passwords, and keeps those of each user. */
export interface ApplicationPasswords {
  /**
   * Returns `null` for a request without Basic authentication, and resolves with the user's id or
   * the refusal of a wrong user name or password.
   *
   * @throws PostbellError `storage_unavailable`
   */
  authenticate(request: HttpRequest): Promise<{ readonly id: number } | AuthenticationRefusal> | null;
  /** Resolves with the user and the password that the header of a request names, if it is right. */
  identify(request: {
    headers: HttpRequest["headers"];
    baseUrl: string;
  }): Promise<{ readonly id: number; readonly uuid: string } | undefined>;
  /** Resolves with the passwords of a user, oldest first. */
  list(userId: number): Promise<readonly ApplicationPassword[]>;
  /**
   * Creates a password, which cannot be read again. A user has at most 100.
   *
   * @throws RestError 400 `application_password_limit_reached`
   */
  create(
    userId: number,
    input: ApplicationPasswordInput,
  ): Promise<ApplicationPassword & { readonly password: string }>;
  /** Resolves with the changed password, or `undefined` if the user has no such password. */
  update(
    userId: number,
    uuid: string,
    input: Partial<ApplicationPasswordInput>,
  ): Promise<ApplicationPassword | undefined>;
  /** Revokes one password, or all without `uuid`. Resolves with those that were revoked. */
  revoke(userId: number, uuid?: string): Promise<readonly ApplicationPassword[]>;
  /** The option of that name. */
  readonly authorizationUrl: string | undefined;
}

export interface Callers {
  anonymous: Caller;
  /** Returns a user with the permissions of his roles. */
  toCaller: (user: User) => Caller;
  /** @throws RestError 401 if there is no user with this id */
  load: (id: number) => Promise<Caller>;
  /**
   * Asks the host who makes a request. Synchronous for an anonymous caller whom the host knows at
   * once.
   *
   * @throws RestError with the status and code of a refusal by the host; 500 `rest_internal_error`
   *   if the host returned something else, which is logged; 401 if there is no such user
   */
  authenticate: (request: HttpRequest) => Caller | Promise<Caller>;
}

type Authentication = Awaited<ReturnType<AuthenticateContent>>;

export function createCallers({
  users,
  roles,
  model,
  authenticate,
  logger,
}: {
  users: { get: (id: number) => User | null | Promise<User | null> };
  roles: Roles;
  model: ContentModel;
  authenticate: AuthenticateContent;
  logger: Logger;
}): Callers {
  const toCaller = createAuthorization({ roles, model });
  const anonymous = toCaller(null);

  const load = async (id: number): Promise<Caller> => {
    const user = await users.get(id);
    if (user === null) throw unauthorized();
    return toCaller(user);
  };

  const resolve = (authentication: Authentication): Caller | Promise<Caller> => {
    if (authentication === null || authentication === undefined) return anonymous;
    if (typeof authentication === "object" && "id" in authentication) return load(authentication.id);
    const problem = findProblem(authentication);
    if (problem === undefined)
      throw new RestError(authentication.status, authentication.code, authentication.message);
    logger.error({ problem }, "authenticate returned neither a user nor a valid refusal");
    throw new RestError(500, "rest_internal_error", "The request could not be answered.");
  };

  return {
    anonymous,
    toCaller,
    load,
    authenticate(request) {
      const authentication = authenticate(request);
      return isPromiseLike(authentication)
        ? Promise.resolve(authentication).then(resolve)
        : resolve(authentication);
    },
  };
}

/** Checks the `request` of a call of the host. Throws `invalid_argument`. */
export function checkRequest(call: string, request: Partial<HttpRequest> | null | undefined): void {
  if (typeof request?.path === "string") return;
  const message = `${call}() takes request, in the form that adapters pass.`;
  throw new PostbellError("invalid_argument", message, { field: "request" });
}

/** Checks the `as` of a call of the host. Throws `invalid_argument`. */
export function checkUserId(call: string, as: unknown): void {
  if (Number.isSafeInteger(as) && Number(as) > 0) return;
  const message = `${call}() takes as: the id of a user, a whole number from 1 (got ${describe(as)}).`;
  throw new PostbellError("invalid_argument", message, { field: "as" });
}

/** The same for an unknown id and a broken credential, so that neither can be guessed. */
const unauthorized = (): RestError =>
  new RestError(401, "rest_not_logged_in", "The credentials of the request are not valid.");

const MAX_CODE = 100;
const MAX_MESSAGE = 1_000;

/** Says what is wrong with a refusal of the host. Shows none of its texts, which may be secret. */
function findProblem(refusal: AuthenticationRefusal): string | undefined {
  if (typeof refusal !== "object") return `got a value of type ${typeof refusal}`;
  const { status, code, message } = refusal;
  if (!(Number.isInteger(status) && status >= 400 && status < 500)) {
    return `status must be a whole number from 400 to 499 (got ${describe(status)})`;
  }
  if (!isText(code, MAX_CODE)) return `code must be a text of 1 to ${MAX_CODE} characters`;
  if (!isText(message, MAX_MESSAGE)) return `message must be a text of 1 to ${MAX_MESSAGE} characters`;
  return undefined;
}

const describe = (value: unknown): string =>
  typeof value === "number" ? String(value) : `a value of type ${typeof value}`;

const isText = (value: unknown, max: number): boolean =>
  typeof value === "string" && value !== "" && value.length <= max;
