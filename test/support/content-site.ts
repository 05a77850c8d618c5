/** A content service on memory with one user in each role, who signs in with his role's name. */

import { createContent } from "../../src/content/service.js";
import { memoryStorage } from "../../storage/memory/index.js";

export const ROLES = ["administrator", "editor", "author", "contributor", "subscriber"] as const;
export type Role = (typeof ROLES)[number];

export const idOf = (role: Role): number => ROLES.indexOf(role) + 1;

const PASSWORD = "secret";
/** The value of an `Authorization` header. */
export const credentials = (role: Role): string =>
  `Basic ${Buffer.from(`${role}:${PASSWORD}`).toString("base64")}`;

/** For clients that make that header themselves. */
export const login = (role: Role): { readonly username: string; readonly password: string } => ({
  username: role,
  password: PASSWORD,
});

type ContentOptions = Parameters<typeof createContent>[0];

export function contentSite(options: Partial<ContentOptions> = {}): ReturnType<typeof createContent> {
  const roleOf = new Map<string | undefined, Role>(ROLES.map((role) => [credentials(role), role]));
  return createContent({
    storage: memoryStorage(),
    site: { url: "http://localhost", name: "Example" },
    authenticate: ({ headers }) => {
      const role = roleOf.get(headers["authorization"]);
      return role === undefined ? null : { id: idOf(role) };
    },
    users: ROLES.map((role) => ({ id: idOf(role), slug: role, name: `The ${role}`, roles: [role] })),
    ...options,
  });
}
