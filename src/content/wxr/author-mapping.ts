/** Who is who: the authors of a file among the users of this site. */

import { PostbellError } from "../../core/errors.js";
import type { User } from "../records/records.js";
import { toSlug } from "../text/slug.js";
import type { Users } from "../users/users.js";
import type { WxrAuthor } from "./types.js";

export interface AuthorMapping {
  readonly note: (author: WxrAuthor) => void;
  /** Of the user with this login in the file. */
  readonly idOf: (login: string) => number;
}

/**
 * `authors`: ids by login, as the host gives them. Others are found by their slug, by their address, or by their name where one user alone has it.
 *
 * Errors: `invalid_argument` where nobody has an id in `authors`.
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
  const noted = new Map<string, WxrAuthor>();
  const found = new Map<string, number>();

  function find(login: string): User | undefined {
    const { email = "", name = "" } = noted.get(login) ?? {};
    const namesakes = name === "" ? [] : all.filter((user) => user.name === name);
    return (
      all.find(({ slug }) => slug === login || slug === toSlug(login)) ??
      all.find((user) => email !== "" && user.email?.toLowerCase() === email.toLowerCase()) ??
      (namesakes.length === 1 ? namesakes[0] : undefined)
    );
  }

  return {
    note: (author) => noted.set(author.login, author),
    idOf(login) {
      const known = given.get(login) ?? found.get(login);
      if (known !== undefined) return known;
      const id = find(login)?.id ?? as;
      // Whatever an item names as its author must not be kept.
      if (noted.has(login)) found.set(login, id);
      return id;
    },
  };
}
