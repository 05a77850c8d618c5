import { describe, expect, it } from "vitest";
import { createAuthorization } from "../../../src/content/auth/caller.js";
import { type RoleOptions, readRoles } from "../../../src/content/auth/roles.js";
import { builtInModel } from "../../../src/content/declared-types.js";
import type { Post, PostColumns, PostStatus, PostType, User } from "../../../src/content/records/records.js";
import { isPostbellError } from "../../../src/core/errors.js";

const callerOf = createAuthorization({ roles: readRoles(), model: builtInModel });

const userWith = (...roles: string[]): User => ({ id: 7, slug: "ann", name: "Ann", roles });
const as = (...roles: string[]) => callerOf(userWith(...roles));
const anonymous = callerOf(null);

const columns = (fields: Partial<PostColumns>): PostColumns => ({
  id: 1,
  type: "post",
  status: "publish",
  author: 7,
  date: 0,
  dateGmt: 0,
  modified: 0,
  modifiedGmt: 0,
  slug: "a",
  title: "A",
  parent: 0,
  menuOrder: 0,
  hasPassword: false,
  sticky: false,
  format: "standard",
  terms: {},
  mimeType: "",
  target: "",
  ...fields,
});

const whole = (fields: Partial<Post>): Post => ({
  ...columns(fields),
  version: 1,
  content: "",
  excerpt: "",
  password: "",
  commentStatus: "open",
  pingStatus: "open",
  template: "",
  featuredMedia: 0,
  meta: {},
  isTrusted: false,
  beforeTrash: null,
  revisions: [],
  autosaves: {},
  menuItem: null,
  media: null,
  ...fields,
});

/** P published, F future, D draft, N pending, V private, T trash (its former status unknown). */
const STATUSES = {
  P: "publish",
  F: "future",
  D: "draft",
  N: "pending",
  V: "private",
  T: "trash",
} as const satisfies Record<string, PostStatus>;
const ALL = "PFDNVT";

/**
 * Who may do what, written by hand after WordPress: read / edit / delete of own posts, then of
 * others'.
 */
const MATRIX: {
  [type in Exclude<PostType, "attachment">]: { [role: string]: [own: string, others: string] };
} = {
  post: {
    administrator: [`${ALL} ${ALL} ${ALL}`, `${ALL} ${ALL} ${ALL}`],
    editor: [`${ALL} ${ALL} ${ALL}`, `${ALL} ${ALL} ${ALL}`],
    author: [`${ALL} ${ALL} ${ALL}`, "P - -"],
    contributor: [`${ALL} DNV DNV`, "P - -"],
    subscriber: [`${ALL} - -`, "P - -"],
    anonymous: ["P - -", "P - -"],
  },
  page: {
    administrator: [`${ALL} ${ALL} ${ALL}`, `${ALL} ${ALL} ${ALL}`],
    editor: [`${ALL} ${ALL} ${ALL}`, `${ALL} ${ALL} ${ALL}`],
    author: [`${ALL} - -`, "P - -"],
    contributor: [`${ALL} - -`, "P - -"],
    subscriber: [`${ALL} - -`, "P - -"],
    anonymous: ["P - -", "P - -"],
  },
  wp_block: {
    administrator: [`${ALL} ${ALL} ${ALL}`, "PFDNT PFDNT PFDNT"],
    editor: [`${ALL} ${ALL} ${ALL}`, "PFDNT PFDNT PFDNT"],
    author: [`${ALL} ${ALL} ${ALL}`, "P - -"],
    contributor: [`${ALL} DNV DNV`, "P - -"],
    subscriber: ["- - -", "- - -"],
    anonymous: ["- - -", "- - -"],
  },
  wp_navigation: {
    administrator: [`${ALL} ${ALL} ${ALL}`, `${ALL} ${ALL} ${ALL}`],
    editor: [`${ALL} - -`, "P - -"],
    author: [`${ALL} - -`, "P - -"],
    contributor: [`${ALL} - -`, "P - -"],
    subscriber: [`${ALL} - -`, "P - -"],
    anonymous: ["P - -", "P - -"],
  },
  nav_menu_item: {
    administrator: [`${ALL} ${ALL} ${ALL}`, `${ALL} ${ALL} ${ALL}`],
    editor: [`${ALL} - -`, "P - -"],
    author: [`${ALL} - -`, "P - -"],
    contributor: [`${ALL} - -`, "P - -"],
    subscriber: ["- - -", "- - -"],
    anonymous: ["- - -", "- - -"],
  },
};

const rows = Object.entries(MATRIX).flatMap(([type, roles]) =>
  Object.entries(roles).flatMap(([role, [own, others]]) => [
    { type: type as PostType, role, whose: "own", author: 7, expected: own },
    { type: type as PostType, role, whose: "others'", author: 8, expected: others },
  ]),
);

describe("what a role may do to a post", () => {
  it.each(rows)("$role: $whose $type", ({ type, role, author, expected }) => {
    const caller = role === "anonymous" ? anonymous : as(role);
    const letters = (action: "read" | "edit" | "delete"): string =>
      Object.entries(STATUSES)
        .filter(([, status]) => caller.may(action, columns({ type, author, status })))
        .map(([letter]) => letter)
        .join("") || "-";
    expect(`${letters("read")} ${letters("edit")} ${letters("delete")}`).toBe(expected);
  });

  it("lets nobody own what has no author", () => {
    expect(anonymous.may("read", columns({ author: 0, status: "draft" }))).toBe(false);
    expect(callerOf({ ...userWith("author"), id: 0 }).may("edit", columns({ author: 0 }))).toBe(false);
  });

  it.each([
    ["publish", "contributor", false],
    ["future", "contributor", false],
    ["draft", "contributor", true],
    ["publish", "author", true],
  ] as const)("a %s post that lies in the trash may be edited by its %s: %s", (status, role, expected) => {
    const post = whole({ status: "trash", beforeTrash: { status, slug: "a" } });
    expect(as(role).may("edit", post)).toBe(expected);
    expect(as(role).may("delete", post)).toBe(expected);
  });

  it.each([
    ["post", "administrator editor author"],
    ["attachment", "administrator editor author"],
    ["wp_block", "administrator editor author"],
    ["page", "administrator editor"],
    ["nav_menu_item", "administrator"],
    ["wp_navigation", "administrator"],
  ] as const)("publishing a %s is for %s", (type, expected) => {
    const roles = ["administrator", "editor", "author", "contributor", "subscriber"];
    const allowed = roles.filter((role) => as(role).canOf(type, "publish_posts"));
    expect(allowed.join(" ")).toBe(expected);
    expect(anonymous.canOf(type, "publish_posts")).toBe(false);
  });
});

describe("an attachment", () => {
  const attachment = columns({ type: "attachment", status: "inherit", author: 8, parent: 2 });
  const parent = (fields: Partial<PostColumns>): PostColumns => columns({ id: 2, author: 9, ...fields });

  it("is read by everybody when it belongs to nothing, or to something published", () => {
    for (const caller of [anonymous, as("subscriber"), as("editor")]) {
      expect(caller.may("read", attachment)).toBe(true);
      expect(caller.may("read", attachment, parent({ status: "publish" }))).toBe(true);
    }
  });

  it.each([
    ["private", "administrator editor"],
    ["draft", "administrator editor"],
    ["trash", "administrator editor"],
  ] as const)("of a %s post is read by %s", (status, expected) => {
    const roles = ["administrator", "editor", "author", "contributor", "subscriber"];
    const readers = roles.filter((role) => as(role).may("read", attachment, parent({ status })));
    expect(readers.join(" ")).toBe(expected);
    expect(anonymous.may("read", attachment, parent({ status }))).toBe(false);
  });

  it("of a draft is read by the author of the draft, and by its own author", () => {
    expect(as("contributor").may("read", attachment, parent({ status: "draft", author: 7 }))).toBe(true);
    expect(
      as("contributor").may("read", { ...attachment, author: 7 }, parent({ status: "draft", author: 9 })),
    ).toBe(true);
  });

  it("is changed by its own author and by editors, whatever it belongs to", () => {
    expect(as("author").may("edit", attachment, parent({ author: 7 }))).toBe(false);
    expect(as("author").may("delete", { ...attachment, author: 7 })).toBe(true);
    expect(as("editor").may("edit", attachment)).toBe(true);
  });

  it("is uploaded by authors and above", () => {
    expect(as("author").canOf("attachment", "create_posts")).toBe(true);
    expect(as("contributor").canOf("attachment", "create_posts")).toBe(false);
  });
});

describe("general capabilities", () => {
  it.each([
    ["category", "edit_terms", "administrator editor"],
    ["category", "assign_terms", "administrator editor author contributor"],
    ["post_tag", "edit_terms", "administrator editor"],
    ["post_tag", "assign_terms", "administrator editor author contributor"],
    ["wp_pattern_category", "delete_terms", "administrator editor"],
    ["nav_menu", "assign_terms", "administrator"],
    ["wp_block", "create_posts", "administrator editor author"],
    ["wp_block", "read", "administrator editor author contributor"],
    ["page", "create_posts", "administrator editor"],
    ["nav_menu_item", "create_posts", "administrator"],
    ["post", "no_such_capability", ""],
    ["post", "constructor", ""],
  ] as const)("%s: %s is for %s", (of, capability, expected) => {
    const roles = ["administrator", "editor", "author", "contributor", "subscriber"];
    expect(roles.filter((role) => as(role).canOf(of, capability)).join(" ")).toBe(expected);
    expect(anonymous.canOf(of, capability)).toBe(false);
  });

  it("lets administrators and editors write unfiltered HTML, nobody else", () => {
    const roles = ["administrator", "editor", "author", "contributor", "subscriber"];
    expect(roles.filter((role) => as(role).has("unfiltered_html"))).toEqual(["administrator", "editor"]);
  });

  it("adds up over several roles; a role that does not exist gives nothing", () => {
    expect(as("subscriber", "author").has("publish_posts")).toBe(true);
    expect(as("no-such-role").has("read")).toBe(false);
    expect(as("constructor").has("read")).toBe(false);
  });
});

describe("roles of the host", () => {
  it("have their own capabilities and those they inherit, also over two steps", () => {
    const roles = readRoles({
      chief: { inherits: "desk", capabilities: ["edit_theme_options"] },
      desk: { inherits: "editor", capabilities: ["list_users"] },
    });
    const chief = createAuthorization({ roles, model: builtInModel })(userWith("chief"));
    expect(["edit_theme_options", "list_users", "edit_others_pages", "read"].every(chief.has)).toBe(true);
    expect(chief.has("edit_users")).toBe(false);
  });

  it("are taken as they are at construction", () => {
    const capabilities = ["read"];
    const roles = readRoles({ reader: { capabilities } });
    capabilities.push("edit_posts");
    expect(createAuthorization({ roles, model: builtInModel })(userWith("reader")).has("edit_posts")).toBe(
      false,
    );
  });

  it.each([
    ["a list", [], "roles"],
    ["a malformed name", { "Chief Editor": { capabilities: [] } }, "roles"],
    ["a name that is taken", { editor: { capabilities: [] } }, "roles.editor"],
    ["no capabilities", { chief: {} }, "roles.chief.capabilities"],
    [
      "capabilities that are no names",
      { chief: { capabilities: ["edit posts"] } },
      "roles.chief.capabilities",
    ],
    ["an unknown key", { chief: { capabilities: [], extends: "editor" } }, "roles.chief"],
    ["inheriting from nothing", { chief: { inherits: "boss", capabilities: [] } }, "roles.chief.inherits"],
    [
      "inheriting from an object's prototype",
      { chief: { inherits: "toString", capabilities: [] } },
      "roles.chief.inherits",
    ],
    [
      "a circle",
      { a: { inherits: "b", capabilities: [] }, b: { inherits: "a", capabilities: [] } },
      "roles.b.inherits",
    ],
  ])("are refused at construction: %s", (_, options, field) => {
    let thrown: unknown;
    try {
      readRoles(options as unknown as RoleOptions);
    } catch (error) {
      thrown = error;
    }
    expect(isPostbellError(thrown) && { code: thrown.code, field: thrown.field }).toEqual({
      code: "invalid_option",
      field,
    });
  });
});
