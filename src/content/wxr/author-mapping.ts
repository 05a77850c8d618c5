/** Maps the authors of a file to users of this site. */

import { PostbellError } from "../../core/errors.js";
import type { User } from "../records/records.js";
import { toSlug } from "../text/slug.js";
import type { Users } from "../users/users.js";
import type { WxrAuthor } from "./types.js";

export interface AuthorMapping {
  readonly add: (author: WxrAuthor) => void;
  /** Returns the id of the user for a login in the file. */
  readonly getUserId: (login: string) => number;
}

/**
 * Creates the mapping. `authors` has the ids that the host gives, by login. Other authors are found
 * by slug, by e-mail address, or by a name that only one user has. The rest become `as`.
 *
 * @throws `invalid_argument` if no user has an id that `authors` names.
 */
export async function createAuthorMapping({
  users,
  authors,
  as,
}: {
  readonly users: Users;
  readonly authors: { readonly [login: string]: number };
  readonly as: number;
}): Promise<AuthorMapping> {
  for (const [login, id] of Object.entries(authors)) {
    if ((await users.get(id)) !== null) continue;
    throw new PostbellError("invalid_argument", `content.import: no user has the id ${id}.`, {
      field: `authors.${login}`,
    });
  }
  const given = new Map(Object.entries(authors));
  const all = await users.all();
  const bySlug = new Map(all.toReversed().map((user) => [user.slug, user]));
  const byEmail = new Map(all.toReversed().map((user) => [user.email?.toLowerCase() ?? "", user]));
  const byName = new Map<string, User | "several">();
  for (const user of all) byName.set(user.name, byName.has(user.name) ? "several" : user);
  const added = new Map<string, WxrAuthor>();
  const found = new Map<string, number>();

  function findUser(login: string): User | undefined {
    const { email = "", name = "" } = added.get(login) ?? {};
    const namesake = name === "" ? undefined : byName.get(name);
    return (
      bySlug.get(login) ??
      bySlug.get(toSlug(login)) ??
      (email === "" ? undefined : byEmail.get(email.toLowerCase())) ??
      (namesake === "several" ? undefined : namesake)
    );
  }

  return {
    add: (author) => added.set(author.login, author),
    getUserId(login) {
      const known = given.get(login) ?? found.get(login);
      if (known !== undefined) return known;
      const id = findUser(login)?.id ?? as;
      // Cached for authors of the file only: items may name any number of other logins.
      if (added.has(login)) found.set(login, id);
      return id;
    },
  };
}
