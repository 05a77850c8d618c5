/**
 * Reads the users of the site from the host: from its list, or from its functions, whose failures
 * are contained. Knows no request.
 */

import { AsyncResource } from "node:async_hooks";
import { type Clock, withTimeout } from "../../core/clock.js";
import { PostbellError } from "../../core/errors.js";
import type { Logger } from "../../core/logger.js";
import type { ContentModel } from "../records/content-model.js";
import type { PostType, User } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import { RestError } from "../rest/error.js";
import type { RestRequest } from "../rest/types.js";
import { cleanUrl } from "../text/urls.js";

/**
 * The users of a host as functions, for a host with many users or with users that change. Both
 * functions may return a value or a promise.
 */
export interface UserSource {
  /**
   * Returns a user, or `null` or `undefined` if nobody has the id. Called for the caller of every
   * request.
   */
  readonly get: (id: number) => User | null | undefined | PromiseLike<User | null | undefined>;
  /**
   * Returns one page of users in an order that is the same for every page. `page` starts at 1;
   * `total` counts all pages.
   */
  readonly list: (range: { page: number; perPage: number }) => UserPage | PromiseLike<UserPage>;
}

/** One page of users. */
export interface UserPage {
  readonly users: readonly User[];
  readonly total: number;
}

/** The users of the site: a list, or functions that read them. */
export type UsersOption = readonly User[] | UserSource;

/**
 * Reads users. Both functions throw RestError 503 `rest_users_unavailable` if the host's function
 * throws, takes more than 5 s or returns an invalid value.
 */
export interface Users {
  /** Returns `null` if no user has the id. Returns a promise only if the host's function does. */
  get: (id: number) => User | null | Promise<User | null>;
  /** Returns all users, at most 10 000. The result of the host's function is cached for 10 s. */
  all: () => User[] | Promise<User[]>;
  /**
   * Returns a number that grows every 10 s if the host's functions may return something new. What
   * was derived from users before is stale then.
   */
  stamp: () => number;
}

const TIMEOUT_MS = 5_000;
/** Anonymous lists must not make the host read all its users each time. */
const LIST_AGE_MS = 10_000;
const PAGE_SIZE = 100;
const MAX_USERS = 10_000;

const isText = (value: unknown): value is string => typeof value === "string";

const isOptionalText = (value: unknown): boolean => value === undefined || value === null || isText(value);

/** True if every required property is valid and every other one valid or absent. */
function isUser({ id, slug, name, roles, avatarUrls, ...rest }: Partial<User>): boolean {
  if (!Number.isSafeInteger(id) || (id as number) <= 0) return false;
  // The slug is part of URLs, which have no form for a lone surrogate.
  if (!isText(slug) || slug === "" || !slug.isWellFormed() || !isText(name)) return false;
  if (!Array.isArray(roles) || !roles.every(isText)) return false;
  if (![rest.description, rest.url, rest.email].every(isOptionalText)) return false;
  return avatarUrls === undefined || avatarUrls === null || Object.values(avatarUrls).every(isText);
}

/** Returns a frozen copy of a user, or `undefined` if it is not a user. */
function readUser(value: unknown): User | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (!isUser(value as Partial<User>)) return undefined;
  const { id, slug, name, roles, description, url, email, avatarUrls } = value as User;
  return Object.freeze({
    id,
    slug,
    name,
    roles: Object.freeze([...roles]),
    description: description ?? "",
    url: cleanUrl(url ?? ""),
    email: email ?? "",
    avatarUrls: Object.freeze(
      Object.fromEntries(
        Object.entries(avatarUrls ?? {}).map(([pixels, picture]) => [pixels, cleanUrl(picture)]),
      ),
    ),
  });
}

/**
 * Reads the `users` option.
 *
 * @throws `invalid_option` with field `users` unless it is a list or has both functions, and with
 * `users[<n>]` for an entry that is not a user or has the id or slug of another one.
 */
export function createUsers({
  users,
  clock,
  logger,
}: {
  users: UsersOption;
  clock: Clock;
  logger: Logger;
}): Users {
  if (Array.isArray(users)) return createListedUsers(users);
  const source = users as UserSource | null;
  if (typeof source?.get !== "function" || typeof source.list !== "function") {
    throw new PostbellError(
      "invalid_option",
      "createContent: users must be a list of users, or an object with the functions get and list.",
      { field: "users" },
    );
  }
  return createHostUsers(source, clock, logger);
}

function createListedUsers(users: User[]): Users {
  const byId = new Map<number, User>();
  const slugs = new Set<string>();
  for (const [at, entry] of users.entries()) {
    const field = `users[${at}]`;
    const user = readUser(entry);
    if (user === undefined) {
      throw new PostbellError(
        "invalid_option",
        `createContent: ${field} must have an id (a whole number from 1), a slug without lone surrogates, a name and a list of roles.`,
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
  const everybody = [...byId.values()];
  return Object.freeze({ get: (id: number) => byId.get(id) ?? null, all: () => everybody, stamp: () => 0 });
}

function createHostUsers(source: UserSource, clock: Clock, logger: Logger): Users {
  function unavailable(error: unknown): RestError {
    logger.warn({ error }, "the host's users could not be read");
    return new RestError(
      503,
      "rest_users_unavailable",
      "Users cannot be read at the moment; try again later.",
    );
  }

  /** Requests share users, so these must not depend on what one keeps in its async context. */
  const inOwnContext = AsyncResource.bind((call: () => unknown) => call());

  /** Calls a function of the host and reads its result. Any failure becomes a 503. */
  function callHost<T, U>(call: () => T | PromiseLike<T>, read: (result: T) => U): U | Promise<U> {
    const settle = (result: T): U => {
      try {
        return read(result);
      } catch (error) {
        throw unavailable(error);
      }
    };
    let result: T | PromiseLike<T>;
    try {
      result = inOwnContext(call) as T | PromiseLike<T>;
    } catch (error) {
      throw unavailable(error);
    }
    if (!isPromise(result)) return settle(result);
    const late = (): Error => new Error(`the host's function took more than ${TIMEOUT_MS} ms`);
    return withTimeout(clock, TIMEOUT_MS, result, late).then(settle, (error: unknown) => {
      throw unavailable(error);
    });
  }

  function checkUser(value: unknown): User {
    const user = readUser(value);
    if (user === undefined) throw new Error("the host's function returned an invalid user");
    return user;
  }

  async function readAll(): Promise<User[]> {
    const found = new Map<number, User>();
    for (let page = 1; found.size < MAX_USERS && page <= MAX_USERS / PAGE_SIZE; page += 1) {
      const read = await callHost(
        () => source.list({ page, perPage: PAGE_SIZE }),
        ({ users, total }) => ({ users: users.map(checkUser), total: Number(total) }),
      );
      for (const user of read.users) found.set(user.id, user);
      if (read.users.length === 0 || page * PAGE_SIZE >= read.total) break;
    }
    return [...found.values()];
  }

  let latest: { at: number; users: Promise<User[]> } | undefined;
  return Object.freeze({
    get: (id: number) =>
      callHost(
        () => source.get(id),
        (value) => {
          if (value === null || value === undefined) return null;
          const user = checkUser(value);
          if (user.id !== id)
            throw new Error(`the host's function returned user ${user.id} for the id ${id}`);
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

// Decides which users a caller may see. The authors of published posts are public.

interface UserVisibility {
  /**
   * Resolves with those of `everybody` who have published something of one of `types`. Without
   * `types`, these are the users whom anonymous callers may see.
   */
  listPublishers: (everybody: User[], types?: PostType[]) => Promise<User[]>;
  /**
   * Resolves with the requested user. A user whom the caller may not see is reported like one who
   * does not exist, so that ids cannot be probed; WordPress tells the two apart.
   *
   * @throws RestError 404 `rest_user_invalid_id`.
   */
  find: (request: RestRequest) => Promise<User>;
}

interface UserVisibilityOptions {
  repository: ContentRepository;
  users: Users;
}

/** Types whose published posts everybody may read, so their authors are no secret. */
const listPublicTypes = ({ types }: ContentModel): PostType[] =>
  [...types.values()].flatMap(({ type, isViewable }) => (isViewable && type !== "attachment" ? [type] : []));

interface CachedPublishers {
  stamp: number;
  everybody: User[];
  /** By the types, joined. */
  lists: Map<string, User[]>;
}

export function createUserVisibility({ repository, users }: UserVisibilityOptions): UserVisibility {
  const publicTypes = listPublicTypes(repository.index.model);
  let cache: CachedPublishers | undefined;

  async function hasPublished({ id }: User, types: PostType[]): Promise<boolean> {
    for (const type of types) {
      const { total } = await repository.index.find(
        {
          type,
          visibility: { publish: "all" },
          author: [id],
          orderBy: "date",
          order: "desc",
          offset: 0,
          limit: 1,
        },
        async () => [],
      );
      if (total > 0) return true;
    }
    return false;
  }

  async function isVisible(user: User, caller: RestRequest["caller"]): Promise<boolean> {
    if (caller.id === user.id || caller.has("list_users") || caller.has("edit_users")) return true;
    return hasPublished(user, publicTypes);
  }

  return {
    async listPublishers(everybody, types = publicTypes) {
      const stamp = repository.stamp();
      if (cache?.stamp !== stamp || cache.everybody !== everybody) {
        cache = { stamp, everybody, lists: new Map() };
      }
      const { lists } = cache;
      const key = [...new Set(types)].sort().join();
      const found = lists.get(key);
      if (found !== undefined) return found;
      const publishers: User[] = [];
      for (const user of everybody) if (await hasPublished(user, types)) publishers.push(user);
      lists.set(key, publishers);
      return publishers;
    },
    async find({ values, caller }) {
      const id = Number(values["id"]);
      const user = caller.user?.id === id ? caller.user : await users.get(id);
      if (user !== null && (await isVisible(user, caller))) return user;
      throw new RestError(404, "rest_user_invalid_id", "Invalid user ID.");
    },
  };
}
