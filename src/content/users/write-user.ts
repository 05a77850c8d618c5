/**
 * Writes the values that the site stores about a user: the preferences of the editor. Everything
 * else is the host's, so a value that would change it is refused.
 */

import { coerceValue } from "../../schema/coerce.js";
import { checkJsonLimits } from "../../schema/json-limits.js";
import type { Argument, Arguments, Json, JsonObject, Schema } from "../../schema/types.js";
import { validateValue } from "../../schema/validate.js";
import { COUNTS, LENGTHS, NAMES } from "../argument-bounds.js";
import type { User } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import { RestError } from "../rest/error.js";
import { invalidParams } from "../rest/request-input.js";
import type { RestRequest } from "../rest/types.js";

/** The preferences of an editor have a few thousand characters. */
const MAX_PREFERENCES = 65_536;
const MAX_LEVELS = 16;

/** The fields of a user that a client may send back unchanged. */
const HOST_FIELDS = ["name", "email", "url", "description", "slug"] as const satisfies (keyof User)[];

/** Fields of WordPress that the host does not give, so every value of them is a change. */
const UNKNOWN_FIELDS = ["username", "first_name", "last_name", "locale", "nickname", "password"] as const;

const text = (description: string, maxLength: number = LENGTHS.name): Argument => ({
  description,
  type: "string",
  maxLength,
});

/** `persisted_preferences`, as WordPress describes it. */
export const PREFERENCES: Schema = {
  type: "object",
  properties: {
    _modified: {
      description: "The date and time the preferences were updated.",
      type: "string",
      format: "date-time",
      maxLength: LENGTHS.date,
    },
  },
  maxProperties: COUNTS.members,
  additionalProperties: true,
};

/** The arguments of an update, in the order of WordPress. */
export const userArguments: Arguments = {
  username: text("Login name for the user."),
  name: text("Display name for the user.", LENGTHS.title),
  first_name: text("First name for the user."),
  last_name: text("Last name for the user."),
  email: {
    ...text("The email address for the user."),
    format: "email",
    // A user may have none, and sends the empty text back.
    validate: (value) =>
      value === "" ? undefined : validateValue(value, { type: "string", format: "email" }, "email"),
  },
  url: { ...text("URL of the user.", LENGTHS.url), format: "uri" },
  description: text("Description of the user.", LENGTHS.termText),
  locale: text("Locale for the user."),
  nickname: text("The nickname for the user."),
  slug: text("An alphanumeric identifier for the user.", LENGTHS.slug),
  roles: { description: "Roles assigned to the user.", ...NAMES },
  password: text("Password for the user (never included).", LENGTHS.password),
  meta: {
    description: "Meta fields.",
    type: "object",
    properties: { persisted_preferences: PREFERENCES },
    // The argument checks the outer form alone. Like in WordPress, the members are checked later.
    validate: (value) =>
      typeof value === "object"
        ? undefined
        : { code: "rest_invalid_param", message: "meta must be an object." },
    sanitize: (value) => value,
  },
};

const isSameSet = (value: Json | undefined, roles: readonly string[]): boolean =>
  Array.isArray(value) &&
  value.length === roles.length &&
  value.every((role) => roles.includes(String(role)));

/**
 * Refuses values that differ from those of the host. `null` changes nothing.
 *
 * @throws RestError 400 `rest_user_invalid_argument`
 */
function refuseHostFields({ values, input, isGiven }: RestRequest, user: User): void {
  const isSet = (name: string): boolean => isGiven(name) && input[name] !== null;
  const changed =
    UNKNOWN_FIELDS.find(isSet) ??
    HOST_FIELDS.find((name) => isSet(name) && ![input[name], values[name]].includes(user[name] ?? "")) ??
    (isSet("roles") && !isSameSet(values["roles"], user.roles) ? "roles" : undefined);
  if (changed === undefined) return;
  const message = `The field ${changed} of a user cannot be changed here; the website keeps it.`;
  throw new RestError(400, "rest_user_invalid_argument", message, {
    data: { params: { [changed]: message } },
  });
}

/**
 * Returns the preferences to store, `null` to remove them, and `undefined` if the request has none.
 *
 * @throws RestError 400 with the schema's code for an invalid value; 413 `rest_text_too_large`
 */
function readPreferences({ values }: RestRequest): JsonObject | null | undefined {
  const meta = values["meta"];
  const isObject = typeof meta === "object" && meta !== null && !Array.isArray(meta);
  const value = isObject && Object.hasOwn(meta, NAME) ? (meta as JsonObject)[NAME] : undefined;
  if (value === undefined || value === null) return value;
  const tooDeep = checkJsonLimits(value, { levels: MAX_LEVELS });
  if (tooDeep !== undefined) throw invalidParams({ meta: `${PATH}: ${tooDeep.message}` }, {});
  if (JSON.stringify(value).length > MAX_PREFERENCES) {
    throw new RestError(
      413,
      "rest_text_too_large",
      `${PATH} must have at most ${MAX_PREFERENCES} characters.`,
    );
  }
  const problem = validateValue(value, PREFERENCES, PATH);
  if (problem !== undefined) throw new RestError(400, problem.code, problem.message);
  return coerceValue(value, PREFERENCES) as JsonObject;
}

const NAME = "persisted_preferences";
const PATH = `meta.${NAME}`;

/** Stores what the request gives, all of it or nothing. */
export async function writeUser(
  request: RestRequest,
  user: User,
  { change, userMeta }: ContentRepository,
): Promise<void> {
  refuseHostFields(request, user);
  const preferences = readPreferences(request);
  if (preferences === undefined) return;
  await change(async (transaction) => {
    const { version } = await userMeta(user.id);
    transaction.putUserMeta(user.id, {
      meta: preferences === null ? {} : { persisted_preferences: preferences },
      version,
    });
  });
}
