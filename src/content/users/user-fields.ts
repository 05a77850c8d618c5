/** The fields of a user as they are answered. What only he himself and those who manage users see stands in the context `edit`. */

import type { Roles } from "../auth/roles.js";
import type { User } from "../records/records.js";
import { ALL, EDIT, NO_META, type RecordFields } from "../rest/record-fields.js";

/** Where the posts of a user are seen. */
export const authorAddress = (home: string, { slug }: User): string =>
  `${home}/author/${encodeURIComponent(slug)}/`;

/** The reference's fields but for those that the host does not tell: login, first and last name, locale. */
export const userFields = ({
  home,
  roles,
}: {
  /** Address of the first page of the website. */
  readonly home: string;
  readonly roles: Roles;
}): RecordFields<User> => ({
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
  link: {
    schema: {
      description: "Author URL of the user.",
      type: "string",
      format: "uri",
      context: ALL,
      readonly: true,
    },
    read: (user) => authorAddress(home, user),
  },
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
  capabilities: {
    schema: {
      description: "All capabilities assigned to the user.",
      type: "object",
      context: EDIT,
      readonly: true,
    },
    read: (user) => {
      const granted = user.roles.flatMap((role) => [...(roles.get(role) ?? []), role]);
      return Object.fromEntries(granted.map((capability) => [capability, true]));
    },
  },
  extra_capabilities: {
    schema: {
      description: "Any extra capabilities assigned to the user.",
      type: "object",
      context: EDIT,
      readonly: true,
    },
    read: (user) => Object.fromEntries(user.roles.map((role) => [role, true])),
  },
  meta: NO_META,
});
