/** The people of the site, as the host knows them: its list, or its functions guarded against what they may do. Knows no request. */

import { type Clock, withTimeout } from "../../core/clock.js";
import { PostbellError } from "../../core/errors.js";
import type { Logger } from "../../core/logger.js";
import type { User } from "../records/records.js";
import { RestError } from "../rest/error.js";

/** A host with many users, or with users that change, gives functions instead of a list. Both may answer at once or later. */
export interface UserSource {
  /** Nobody: `null` or `undefined`. Asked for the caller of every request. */
  readonly get: (id: number) => User | null | undefined | PromiseLike<User | null | undefined>;
  /** In an order that stays the same from page to page; `page` starts at 1. `total` is that of all pages. */
  readonly list: (range: {
    readonly page: number;
    readonly perPage: number;
  }) => UserPage | PromiseLike<UserPage>;
}

/** One page of users. */
export interface UserPage {
  readonly users: readonly User[];
  readonly total: number;
}

/** Who there is: a list, or functions that answer. */
export type UsersOption = readonly User[] | UserSource;

/** Errors of both: RestError 503 `rest_users_unavailable` where the host's function throws, takes more than 5 s or answers nonsense. */
export interface Users {
  /** `null`: nobody has the id. At once where the host's function answers at once. */
  readonly get: (id: number) => User | null | Promise<User | null>;
  /** Everybody, or the first 10 000. What the host's function answers is used for 10 s. */
  readonly all: () => readonly User[] | Promise<readonly User[]>;
  /** A larger number every 10 s where the host's functions may answer something new: what was made of users before is out of date then. */
  readonly stamp: () => number;
}

const TIMEOUT_MS = 5_000;
/** Anonymous lists must not make the host read all its users each time. */
const LIST_AGE_MS = 10_000;
const PAGE_SIZE = 100;
const MAX_USERS = 10_000;

const isText = (value: unknown): value is string => typeof value === "string";

/** A frozen copy of what is known of a user, or `undefined` where `given` is none. */
function readUser(given: unknown): User | undefined {
  if (typeof given !== "object" || given === null) return undefined;
  const { id, slug, name, roles, description, url, email, avatarUrls } = given as Partial<User>;
  const isUser =
    Number.isSafeInteger(id) &&
    (id as number) > 0 &&
    isText(slug) &&
    slug !== "" &&
    isText(name) &&
    Array.isArray(roles) &&
    roles.every(isText) &&
    [description, url, email].every((value) => value === undefined || value === null || isText(value)) &&
    (avatarUrls === undefined || avatarUrls === null || Object.values(avatarUrls).every(isText));
  if (!isUser) return undefined;
  return Object.freeze({
    id: id as number,
    slug,
    name,
    roles: Object.freeze([...roles]),
    description: description ?? "",
    url: url ?? "",
    email: email ?? "",
    avatarUrls: Object.freeze({ ...avatarUrls }),
  });
}

/**
 * Errors: `invalid_option` with field `users` for what is neither a list nor has both functions, `users[<n>]` for an entry of a list that is no user
 * or has an id or slug that another one has.
 */
export function createUsers({
  users,
  clock,
  logger,
}: {
  readonly users: UsersOption;
  readonly clock: Clock;
  readonly logger: Logger;
}): Users {
  if (Array.isArray(users)) return usersOf(users);
  const source = users as UserSource | null;
  if (typeof source?.get !== "function" || typeof source.list !== "function") {
    throw new PostbellError(
      "invalid_option",
      "createContent: users must be a list of users, or an object with the functions get and list.",
      { field: "users" },
    );
  }
  return usersFrom(source, clock, logger);
}

function usersOf(given: readonly User[]): Users {
  const byId = new Map<number, User>();
  const slugs = new Set<string>();
  for (const [at, entry] of given.entries()) {
    const field = `users[${at}]`;
    const user = readUser(entry);
    if (user === undefined) {
      throw new PostbellError(
        "invalid_option",
        `createContent: ${field} must have an id (a whole number from 1), a slug, a name and a list of roles.`,
        { field },
      );
    }
    if (byId.has(user.id) || slugs.has(user.slug)) {
      throw new PostbellError(
        "invalid_option",
        `createContent: ${field} has an id or slug that another user has.`,
        { field },
      );
    }
    byId.set(user.id, user);
    slugs.add(user.slug);
  }
  const everybody = Object.freeze([...byId.values()]);
  return Object.freeze({ get: (id: number) => byId.get(id) ?? null, all: () => everybody, stamp: () => 0 });
}

function usersFrom(source: UserSource, clock: Clock, logger: Logger): Users {
  function unavailable(error: unknown): RestError {
    logger.warn({ error }, "the host's users could not be read");
    return new RestError(
      503,
      "rest_users_unavailable",
      "Users cannot be read at the moment; try again later.",
    );
  }

  /** What `call` answers, as `read` makes it; whatever goes wrong is the host's fault, not the client's. */
  function guarded<T, U>(call: () => T | PromiseLike<T>, read: (answer: T) => U): U | Promise<U> {
    const settle = (answer: T): U => {
      try {
        return read(answer);
      } catch (error) {
        throw unavailable(error);
      }
    };
    let answer: T | PromiseLike<T>;
    try {
      answer = call();
    } catch (error) {
      throw unavailable(error);
    }
    if (!isPromise(answer)) return settle(answer);
    const late = (): Error => new Error("the host took too long");
    return withTimeout(clock, TIMEOUT_MS, answer, late).then(settle, (error: unknown) => {
      throw unavailable(error);
    });
  }

  function checked(given: unknown): User {
    const user = readUser(given);
    if (user === undefined) throw new Error("what the host answered is no user");
    return user;
  }

  async function readAll(): Promise<readonly User[]> {
    const found = new Map<number, User>();
    for (let page = 1; found.size < MAX_USERS && page <= MAX_USERS / PAGE_SIZE; page += 1) {
      const answer = await guarded(
        () => source.list({ page, perPage: PAGE_SIZE }),
        ({ users, total }) => ({ users: users.map(checked), total: Number(total) }),
      );
      for (const user of answer.users) found.set(user.id, user);
      if (answer.users.length === 0 || page * PAGE_SIZE >= answer.total) break;
    }
    return Object.freeze([...found.values()]);
  }

  let latest: { readonly at: number; readonly users: Promise<readonly User[]> } | undefined;
  return Object.freeze({
    get: (id: number) =>
      guarded(
        () => source.get(id),
        (answer) => {
          if (answer === null || answer === undefined) return null;
          const user = checked(answer);
          if (user.id !== id) throw new Error("the host answered another user");
          return user;
        },
      ),
    all() {
      const at = clock.monotonic();
      if (latest === undefined || at - latest.at >= LIST_AGE_MS) {
        const reading = { at, users: readAll() };
        latest = reading;
        reading.users.catch(() => {
          if (latest === reading) latest = undefined;
        });
      }
      return latest.users;
    },
    stamp: () => Math.floor(clock.monotonic() / LIST_AGE_MS),
  });
}

const isPromise = <T>(value: T | PromiseLike<T>): value is PromiseLike<T> =>
  typeof (value as PromiseLike<T> | null | undefined)?.then === "function";
