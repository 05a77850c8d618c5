/** `/statuses`: the statuses of posts. Anonymous callers see only the public one. */

import { canEditSomething } from "../auth/capabilities.js";
import type { PostStatus } from "../records/records.js";
import { ALL, EDIT, FULL, type RecordFields } from "../rest/record-fields.js";
import type { KeyedTable } from "./keyed-routes.js";

interface Status {
  readonly slug: PostStatus;
  readonly name: string;
  /** `protected`: neither published nor private, but listed for who writes. */
  readonly kind: "public" | "private" | "protected" | "internal";
  /** True if its posts get their date when they leave the status. */
  readonly isFloating: boolean;
}

const status = (
  slug: PostStatus,
  name: string,
  kind: Status["kind"],
  isFloating = false,
): readonly [string, Status] => [slug, { slug, name, kind, isFloating }];

const statuses: ReadonlyMap<string, Status> = new Map([
  status("publish", "Published", "public"),
  status("future", "Scheduled", "protected"),
  status("draft", "Draft", "protected", true),
  status("pending", "Pending", "protected", true),
  status("private", "Private", "private"),
  status("trash", "Trash", "internal"),
]);

const fields: RecordFields<Status> = {
  name: {
    schema: { description: "The title for the status.", type: "string", context: ALL },
    read: ({ name }) => name,
  },
  private: {
    schema: {
      description: "Whether posts with this status should be private.",
      type: "boolean",
      context: EDIT,
    },
    read: ({ kind }) => kind === "private",
  },
  protected: {
    schema: {
      description: "Whether posts with this status should be protected.",
      type: "boolean",
      context: EDIT,
    },
    read: ({ kind }) => kind === "protected",
  },
  public: {
    schema: {
      description: "Whether posts of this status should be shown in the front end of the site.",
      type: "boolean",
      context: FULL,
    },
    read: ({ kind }) => kind === "public",
  },
  queryable: {
    schema: {
      description: "Whether posts with this status should be publicly-queryable.",
      type: "boolean",
      context: FULL,
    },
    read: ({ kind }) => kind === "public",
  },
  show_in_list: {
    schema: {
      description: "Whether to include posts in the edit listing for their post type.",
      type: "boolean",
      context: EDIT,
    },
    read: ({ kind }) => kind !== "internal",
  },
  slug: {
    schema: { description: "An alphanumeric identifier for the status.", type: "string", context: ALL },
    read: ({ slug }) => slug,
  },
  date_floating: {
    schema: {
      description: "Whether posts of this status may have floating published dates.",
      type: "boolean",
      context: FULL,
    },
    read: ({ isFloating }) => isFloating,
  },
};

export const statusesTable: KeyedTable<Status> = {
  base: "statuses",
  parameter: "status",
  parameterDescription: "An alphanumeric identifier for the status.",
  entries: statuses,
  fields,
  links: ({ slug }, to) => ({
    archives: [{ href: to(slug === "publish" ? "/posts" : `/posts?status=${slug}`) }],
  }),
  canRead: (caller, { kind }) => kind === "public" || canEditSomething(caller),
  canEdit: (caller) => canEditSomething(caller),
  refusals: {
    unknown: ["rest_status_invalid", "Invalid status."],
    read: ["rest_cannot_read_status", "Cannot view status."],
    editAny: ["rest_cannot_view", "Sorry, you are not allowed to manage post statuses."],
    edit: ["rest_cannot_view", "Sorry, you are not allowed to manage post statuses."],
  },
};
