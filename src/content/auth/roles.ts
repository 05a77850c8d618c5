/**
 * The roles of a site with their capabilities: the five of WordPress and those of the host. Knows
 * no user and no record.
 */

import { PostbellError } from "../../core/errors.js";

/** The roles of the host, by name. */
export interface RoleOptions {
  [name: string]: {
    /** A role whose capabilities it also has: one of the five, or another one of the host. */
    inherits?: string | undefined;
    capabilities: readonly string[];
  };
}

/** Maps the name of a role to its capabilities. */
export type Roles = Map<string, Set<string>>;

const subscriber = ["read"];
const contributor = [...subscriber, "edit_posts", "delete_posts"];
const author = [
  ...contributor,
  "edit_published_posts",
  "publish_posts",
  "delete_published_posts",
  "upload_files",
];
const editor = [
  ...author,
  "edit_others_posts",
  "edit_private_posts",
  "read_private_posts",
  "delete_others_posts",
  "delete_private_posts",
  "edit_pages",
  "edit_others_pages",
  "edit_published_pages",
  "edit_private_pages",
  "publish_pages",
  "read_private_pages",
  "delete_pages",
  "delete_others_pages",
  "delete_published_pages",
  "delete_private_pages",
  "manage_categories",
  "unfiltered_html",
];
const administrator = [
  ...editor,
  "edit_theme_options",
  "switch_themes",
  "list_users",
  "edit_users",
  "manage_options",
];

/**
 * The five roles, with those of their capabilities that this service checks.
 *
 * Source: the roles of a new site of WordPress 7.1.
 */
const standardRoles: Roles = new Map(
  Object.entries({ administrator, editor, author, contributor, subscriber }).map(([name, capabilities]) => [
    name,
    new Set(capabilities),
  ]),
);

const NAME = /^[a-z0-9_-]{1,64}$/;

function invalid(field: string, message: string): PostbellError {
  return new PostbellError("invalid_option", `createContent: ${message}`, { field });
}

const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Returns the five roles and those in `options`. Later changes of `options` have no effect.
 *
 * @throws `invalid_option` with field `roles` or `roles.<name>…` for a malformed name or
 * capability, for the name of one of the five, and for `inherits` that names no role or forms a
 * cycle.
 */
export function readRoles(options: RoleOptions = {}): Roles {
  if (!isObject(options)) throw invalid("roles", "roles must be an object from name to role.");
  for (const [name, role] of Object.entries(options)) checkRole(name, role);

  const listCapabilities = (name: string, field: string, heirs: string[]): string[] => {
    const standard = standardRoles.get(name);
    if (standard !== undefined) return [...standard];
    const role = Object.hasOwn(options, name) ? options[name] : undefined;
    if (role === undefined) throw invalid(field, `${field} must name a role.`);
    if (heirs.includes(name)) throw invalid(field, `${field} leads back to the role itself.`);
    const { inherits, capabilities } = role;
    if (inherits === undefined) return [...capabilities];
    return [...capabilities, ...listCapabilities(inherits, `roles.${name}.inherits`, [...heirs, name])];
  };

  const custom = Object.keys(options).map(
    (name) => [name, new Set(listCapabilities(name, `roles.${name}`, []))] as const,
  );
  return new Map([...standardRoles, ...custom]);
}

function checkRole(name: string, role: unknown): void {
  if (!NAME.test(name)) {
    throw invalid(
      "roles",
      "the name of a role is 1 to 64 lower case letters, digits, hyphens and underscores.",
    );
  }
  const field = `roles.${name}`;
  if (standardRoles.has(name)) {
    throw invalid(field, `${field} exists already: give yours another name, and let it inherit.`);
  }
  if (!isObject(role)) throw invalid(field, `${field} must be an object with capabilities.`);
  const unknownKey = Object.keys(role).find((key) => key !== "inherits" && key !== "capabilities");
  if (unknownKey !== undefined) {
    throw invalid(field, `${field} may have 'inherits' and 'capabilities', nothing else.`);
  }
  const { capabilities, inherits } = role as { capabilities?: unknown; inherits?: unknown };
  const isName = (value: unknown): boolean => typeof value === "string" && NAME.test(value);
  if (!Array.isArray(capabilities) || !capabilities.every(isName)) {
    throw invalid(
      `${field}.capabilities`,
      `${field}.capabilities must be a list of names such as 'edit_posts'.`,
    );
  }
  if (inherits !== undefined && typeof inherits !== "string") {
    throw invalid(`${field}.inherits`, `${field}.inherits must be the name of a role.`);
  }
}
