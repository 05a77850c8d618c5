/**
 * Application passwords: random passwords with which programs sign in as a user by Basic
 * authentication. Stores their hashes next to the content, and verifies the header of a request.
 */

import { createHmac, randomBytes, randomInt, type ScryptOptions, scrypt, timingSafeEqual } from "node:crypto";
import { LRUCache } from "lru-cache";
import { type Clock, withTimeout } from "../../core/clock.js";
import { type ConcurrencyLimit, createConcurrencyLimit } from "../../core/concurrency-limit.js";
import { PostbellError } from "../../core/errors.js";
import { guardedLogger, toServiceLogger } from "../../core/logger.js";
import { readOptions } from "../../core/options.js";
import { createStorageCircuit } from "../../core/storage-circuit.js";
import { randomUUID } from "../../core/uuid.js";
import { createSignInLimit } from "../../http/rate-limit.js";
import type { HttpRequest } from "../../http/types.js";
import type { ApplicationPasswordInput, ApplicationPasswords, AuthenticationRefusal } from "../callers.js";
import type { ApplicationPasswordOptions } from "../content-options.js";
import { applicationPasswordOptions } from "../options.js";
import { guardContentStore } from "../repository/guarded-store.js";
import {
  type ApplicationPassword,
  createPasswordRecords,
  type PasswordRecords,
  type StoredPassword,
} from "../repository/small-records.js";
import { RestError } from "../rest/error.js";

const MAX_PER_USER = 100;
const DAY_MS = 86_400_000;
/** How long a verified password needs no hash. It is still compared with what is stored. */
const VERIFIED_MS = 300_000;
const MAX_VERIFIED = 1_000;
const FIND_USER_MS = 5_000;
/** Each hash takes 16 MiB and a thread of Node's pool, which has four. */
const HASHES = { running: 2, waiting: 64 };

/**
 * Creates the application passwords of a site. Call `authenticate` in that of `createContent`, and
 * pass the result to `createContent` as `applicationPasswords` to serve the routes.
 *
 * @example
 * ```ts
 * const passwords = createApplicationPasswords({ storage, findUser: (name) => findByLogin(name) });
 * const content = createContent({
 *   storage,
 *   applicationPasswords: passwords,
 *   authenticate: (request) => passwords.authenticate(request) ?? findSession(request),
 *   ...others,
 * });
 * ```
 *
 * @throws PostbellError `invalid_option`, with the path of the option as `field`
 */
export function createApplicationPasswords(options: ApplicationPasswordOptions): ApplicationPasswords {
  const config = readOptions("createApplicationPasswords", applicationPasswordOptions, options);
  const { storage, findUser, clock, getAddress } = config;
  if (storage === undefined) throw missing("storage", "pass that of the content.");
  if (findUser === undefined) throw missing("findUser", "pass a function that finds a user by name.");
  const circuit = createStorageCircuit({ clock, logger: guardedLogger(config.logger), service: "content" });
  const { logger } = circuit;
  const store = guardContentStore(storage.content({ clock, logger: toServiceLogger(logger) }), circuit);
  const records = createPasswordRecords(store);
  const hashes = createConcurrencyLimit(HASHES);
  const verify = createVerifier(records, hashes, clock);
  const limits = createSignInLimit({ perMinute: config.failuresPerMinute, clock });
  const now = (): number => Math.floor(store.now());

  async function find(name: string): Promise<{ id: number } | null> {
    const late = (): Error => new Error(`findUser took more than ${FIND_USER_MS} ms`);
    try {
      const user = await withTimeout(clock, FIND_USER_MS, Promise.resolve(findUser?.(name)), late);
      if (user === null || user === undefined) return null;
      if (Number.isSafeInteger(user.id) && user.id > 0) return user;
      throw new Error("findUser must return an object with the id of a user, or null");
    } catch (error) {
      logger.error({ error }, "the hook findUser of the application passwords has failed");
      const message = "Users cannot be read at the moment; try again later.";
      throw new RestError(503, "rest_users_unavailable", message);
    }
  }

  async function check(header: string, baseUrl: string, address?: string): Promise<Checked> {
    if (!config.allowHttp && !baseUrl.startsWith("https://")) return HTTPS_ONLY;
    const credentials = readCredentials(header);
    const attempt = limits.begin(address, credentials?.name);
    let isWrong = credentials === undefined;
    try {
      if (credentials === undefined) return attempt.isAllowed ? WRONG : TOO_MANY;
      const user = await find(credentials.name);
      const found = await verify(user?.id, credentials.password, attempt.isAllowed);
      if (found === "limited") return TOO_MANY;
      isWrong = found === undefined || user === null;
      if (found === undefined || user === null) return WRONG;
      return { id: user.id, uuid: found.uuid, lastUsedAt: found.lastUsedAt };
    } finally {
      if (!isWrong) attempt.release();
    }
  }

  /** Writes at most once a day, like WordPress. */
  async function countUse(id: number, uuid: string, lastIp: string | null): Promise<void> {
    const lastUsedAt = now();
    try {
      await records.edit(id, uuid, (one) =>
        lastUsedAt - (one.lastUsedAt ?? 0) < DAY_MS ? one : { ...one, lastUsedAt, lastIp },
      );
    } catch (error) {
      logger.warn({ error }, "the use of an application password could not be stored");
    }
  }

  async function authenticate(header: string, request: HttpRequest) {
    const address = getAddress?.(request)?.slice(0, MAX_ADDRESS);
    const checked = await check(header, request.baseUrl, address);
    if ("status" in checked) return checked;
    const { id, uuid, lastUsedAt } = checked;
    if (now() - (lastUsedAt ?? 0) >= DAY_MS) await countUse(id, uuid, address ?? null);
    return { id };
  }

  async function create(userId: number, input: ApplicationPasswordInput) {
    const password = generatePassword();
    const hash = await hashes.run(() => hashPassword(password));
    if (hash === undefined) throw busy();
    const selector = password.slice(0, SELECTOR_LENGTH);
    const created: StoredPassword = {
      uuid: randomUUID(),
      appId: input.appId,
      name: input.name,
      createdAt: now(),
      lastUsedAt: null,
      lastIp: null,
      selector,
      hash,
    };
    await records.change(userId, (passwords) => {
      if (passwords.length >= MAX_PER_USER) throw tooManyPasswords();
      if (passwords.some((one) => one.selector === selector)) throw busy();
      return [...passwords, created];
    });
    return { ...toPublic(created), password };
  }

  return Object.freeze<ApplicationPasswords>({
    authenticate(request) {
      const header = request.headers["authorization"];
      return isBasic(header) ? authenticate(header, request) : null;
    },
    async identify({ headers, baseUrl }) {
      const header = headers["authorization"];
      const checked = isBasic(header) ? await check(header, baseUrl) : WRONG;
      return "status" in checked ? undefined : { id: checked.id, uuid: checked.uuid };
    },
    list: async (userId) => (await records.read(userId)).map(toPublic),
    create,
    async update(userId, uuid, input) {
      const edited = await records.edit(userId, uuid, (one) => ({ ...one, ...input }));
      return edited && toPublic(edited);
    },
    async revoke(userId, uuid) {
      let revoked: StoredPassword[] = [];
      await records.change(userId, (passwords) => {
        revoked = passwords.filter((one) => uuid === undefined || one.uuid === uuid);
        return revoked.length === 0 ? passwords : passwords.filter((one) => !revoked.includes(one));
      });
      return revoked.map(toPublic);
    },
    authorizationUrl: config.authorizationUrl,
  });
}

function toPublic(stored: StoredPassword): ApplicationPassword {
  const { selector: _, hash: __, ...password } = stored;
  return password;
}

const tooManyPasswords = (): RestError =>
  new RestError(
    400,
    "application_password_limit_reached",
    `A user can have at most ${MAX_PER_USER} application passwords; delete one first.`,
  );

/** Too many hashes at once, or the first characters of a new password were taken. */
const busy = (): RestError =>
  new RestError(503, "rest_busy", "The password cannot be created at the moment; try again.", {
    retryAfter: 1,
  });

const missing = (field: string, remedy: string): PostbellError =>
  new PostbellError("invalid_option", `createApplicationPasswords: ${field} is missing; ${remedy}`, {
    field,
  });

type Checked = { id: number; uuid: string; lastUsedAt: number | null } | AuthenticationRefusal;

/** The same for an unknown user and a wrong password. */
const WRONG: AuthenticationRefusal = {
  status: 401,
  code: "incorrect_password",
  message: "The user name or the application password is not correct.",
};
const HTTPS_ONLY: AuthenticationRefusal = {
  status: 401,
  code: "application_passwords_disabled",
  message: "Application passwords are accepted over HTTPS only.",
};
const TOO_MANY: AuthenticationRefusal = {
  status: 429,
  code: "rest_too_many_passwords",
  message: "Too many passwords were tried; wait a minute.",
};

// The header: `Basic`, and the Base64 of name, colon and password.

const MAX_NAME = 255;
const MAX_ADDRESS = 64;
/** Longer than any name and password in UTF-8. */
const MAX_HEADER = 2_048;
const BASIC = /^basic /i;
const CREDENTIALS = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i;
const PASSWORD_LENGTH = 24;
const PASSWORD = /^[A-Za-z0-9]{24}$/;
const SELECTOR_LENGTH = 4;

const isBasic = (header: string | undefined): header is string => header !== undefined && BASIC.test(header);

/** Spaces in the password are ignored, since it is shown in groups of four. */
function readCredentials(header: string): { name: string; password: string } | undefined {
  const encoded = header.length <= MAX_HEADER ? CREDENTIALS.exec(header)?.[1] : undefined;
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, "base64").toString();
  const colon = text.indexOf(":");
  const name = text.slice(0, Math.max(colon, 0));
  const password = text.slice(colon + 1).replaceAll(" ", "");
  if (name === "" || name.length > MAX_NAME || /[\0\uFFFD]/.test(name)) return undefined;
  return PASSWORD.test(password) ? { name, password } : undefined;
}

// Hashes: scrypt with a salt of 16 bytes. The text of a hash has its parameters, so that later
// versions can raise them. 2^14, 8 and 1 take 16 MiB: a password has 142 random bits, so that no
// dictionary helps against its hash.

const COST = { N: 16_384, r: 8, p: 1 } as const;
const HASH_BYTES = 32;

const derive = (password: string, salt: Buffer, cost: ScryptOptions): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    scrypt(password, salt, HASH_BYTES, cost, (error, key) => (error ? reject(error) : resolve(key)));
  });

const toHashText = (salt: Buffer, key: Buffer): string =>
  ["scrypt", COST.N, COST.r, COST.p, salt.toString("base64url"), key.toString("base64url")].join("$");

async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16);
  return toHashText(salt, await derive(password, salt, COST));
}

async function matches(password: string, hash: string): Promise<boolean> {
  const [, n, r, p, salt = "", expected = ""] = hash.split("$");
  const cost = { N: Number(n), r: Number(r), p: Number(p) };
  const key = await derive(password, Buffer.from(salt, "base64url"), cost);
  return timingSafeEqual(key, Buffer.from(expected, "base64url"));
}

/** Compared if there is no user or no such password, so that both take as long as a wrong one. */
const NO_HASH = toHashText(randomBytes(16), randomBytes(HASH_BYTES));

/** No user has this id. */
const NOBODY = 0;

/**
 * Returns a function that resolves with a user's password, with `undefined` if it is wrong, and
 * with `limited` if it would need a hash and `mayHash` is false or too many others wait for one.
 *
 * Every call reads what is stored, so a revoked password is refused at once in every process. Equal
 * concurrent calls share one hash.
 */
function createVerifier({ read }: PasswordRecords, hashes: ConcurrencyLimit, clock: Clock) {
  const secret = randomBytes(32);
  /** The moment of the hash, by stored hash and password. */
  const verified = new LRUCache<string, number>({ max: MAX_VERIFIED });
  const running = new Map<string, Promise<boolean>>();

  return async (userId: number | undefined, password: string, mayHash: boolean) => {
    const selector = password.slice(0, SELECTOR_LENGTH);
    const found = (await read(userId ?? NOBODY)).find((stored) => stored.selector === selector);
    const hash = found?.hash ?? NO_HASH;
    const key = createHmac("sha256", secret).update(`${hash} ${password}`).digest("base64url");
    const at = verified.get(key);
    if (at !== undefined && clock.monotonic() - at < VERIFIED_MS) return found;
    if (!mayHash) return "limited";
    const shared = running.get(key) ?? hashes.run(() => matches(password, hash));
    if (shared === undefined) return "limited";
    running.set(key, shared);
    try {
      if (!(await shared)) return undefined;
    } finally {
      running.delete(key);
    }
    verified.set(key, clock.monotonic());
    return found;
  };
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

const generatePassword = (): string =>
  Array.from({ length: PASSWORD_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join("");
