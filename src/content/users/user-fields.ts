/**
 * Defines the fields of a user. Those that only the user and managers of users may see are in the
 * context `edit`.
 */

import type { Schema } from "../../schema/types.js";
import type { Roles } from "../auth/roles.js";
import type { User } from "../records/records.js";
import type { UserMeta } from "../repository/small-records.js";
import { ALL, EDIT, FULL, type RecordField, type RecordFields } from "../rest/record-fields.js";
import { PREFERENCES } from "./write-user.js";

/** A user as responses show him. */
export interface ShownUser extends User {
  /** Absent: he is shown to somebody else, or in another context than `edit`. */
  meta?: UserMeta;
}

/** Returns the URL of a user's posts on the website. */
export const authorAddress = (home: string, { slug }: User): string =>
  `${home}/author/${encodeURIComponent(slug)}/`;

const IDENTITY: RecordFields<User> = {
  id: {
    schema: { description: "Unique identifier for the user.", type: "integer", context: ALL, readonly: true },
    read: ({ id }) => id,
  },
  name: {
    schema: { description: "Display name for the user.", type: "string", context: ALL },
    read: ({ name }) => name,
  },
  email: {
    schema: {
      description: "The email address for the user.",
      type: "string",
      format: "email",
      context: EDIT,
    },
    read: ({ email = "" }) => email,
  },
  url: {
    schema: { description: "URL of the user.", type: "string", format: "uri", context: ALL },
    read: ({ url = "" }) => url,
  },
  description: {
    schema: { description: "Description of the user.", type: "string", context: ALL },
    read: ({ description = "" }) => description,
  },
};

const PROFILE: RecordFields<User> = {
  slug: {
    schema: {
      description: "An alphanumeric identifier for the user.",
      type: "string",
      context: ALL,
    },
    read: ({ slug }) => slug,
  },
  avatar_urls: {
    schema: { description: "Avatar URLs for the user.", type: "object", context: ALL, readonly: true },
    read: ({ avatarUrls = {} }) => avatarUrls,
  },
  roles: {
    schema: {
      description: "Roles assigned to the user.",
      type: "array",
      items: { type: "string" },
      context: EDIT,
    },
    read: (user) => user.roles,
  },
};

const EXTRA_CAPABILITIES: RecordField<User> = {
  schema: {
    description: "Any extra capabilities assigned to the user.",
    type: "object",
    context: EDIT,
    readonly: true,
  },
  read: (user) => Object.fromEntries(user.roles.map((role) => [role, true])),
};

const EMPTY_LIST: Schema = { type: "array", maxItems: 0 };

/** As in WordPress, an empty object is an empty list. */
const META: RecordField<ShownUser> = {
  schema: {
    description: "Meta fields.",
    type: "object",
    context: FULL,
    properties: { persisted_preferences: { ...PREFERENCES, context: EDIT } },
    answered: {
      anyOf: [
        EMPTY_LIST,
        {
          type: "object",
          required: ["persisted_preferences"],
          properties: { persisted_preferences: { anyOf: [EMPTY_LIST, { type: "object" }] } },
          additionalProperties: false,
        },
      ],
    },
  },
  read: ({ meta }) => {
    if (meta === undefined) return [];
    const { persisted_preferences = {} } = meta;
    return {
      persisted_preferences: Object.keys(persisted_preferences).length > 0 ? persisted_preferences : [],
    };
  },
};

const createLinkField = (home: string): RecordField<User> => ({
  schema: {
    description: "Author URL of the user.",
    type: "string",
    format: "uri",
    context: ALL,
    readonly: true,
  },
  read: (user) => authorAddress(home, user),
});

/** The highest of WordPress's old levels, by role: clients still check for them. */
const LEVELS: { readonly [role: string]: number } = {
  administrator: 10,
  editor: 7,
  author: 2,
  contributor: 1,
  subscriber: 0,
};

function listLevels(role: string): string[] {
  const highest = Object.hasOwn(LEVELS, role) ? (LEVELS[role] ?? -1) : -1;
  return Array.from({ length: highest + 1 }, (_, index) => `level_${highest - index}`);
}

const createCapabilitiesField = (roles: Roles): RecordField<User> => ({
  schema: {
    description: "All capabilities assigned to the user.",
    type: "object",
    context: EDIT,
    readonly: true,
  },
  read: (user) => {
    const granted = user.roles.flatMap((role) => [...(roles.get(role) ?? []), ...listLevels(role), role]);
    return Object.fromEntries(granted.map((capability) => [capability, true]));
  },
});

/**
 * Returns the fields of WordPress, except those that a host does not tell: login, first and last
 * name, locale.
 *
 * @param home the URL of the first page of the website
 */
export const userFields = (home: string, roles: Roles): RecordFields<ShownUser> => ({
  ...IDENTITY,
  link: createLinkField(home),
  ...PROFILE,
  capabilities: createCapabilitiesField(roles),
  extra_capabilities: EXTRA_CAPABILITIES,
  meta: META,
});
