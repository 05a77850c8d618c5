/** The names of collections and statuses in the console, and the texts of records. */

import type { CollectionName, MediaDetailsJson, RecordJson, TextJson } from "../../content-shapes.js";
import type { Tone } from "../tone.js";

export interface Kind {
  readonly name: CollectionName;
  /** Heading and navigation. */
  readonly many: string;
  readonly one: string;
  /** The capability without which the visitor sees what is published alone. */
  readonly capability: string;
  readonly hasTrash: boolean;
  /** Fields of the form, in order. */
  readonly fields: readonly FieldName[];
}

export type FieldName =
  | "title"
  | "content"
  | "excerpt"
  | "status"
  | "date"
  | "slug"
  | "alt_text"
  | "caption"
  | "description";

const written = ["title", "content", "excerpt", "status", "date", "slug"] as const;

export const kinds: readonly Kind[] = [
  { name: "posts", many: "Posts", one: "post", capability: "edit_posts", hasTrash: true, fields: written },
  { name: "pages", many: "Pages", one: "page", capability: "edit_pages", hasTrash: true, fields: written },
  {
    name: "media",
    many: "Media",
    one: "file",
    capability: "upload_files",
    hasTrash: false,
    fields: ["title", "alt_text", "caption", "description", "slug"],
  },
];

/** Statuses in words, with the colours of their badges. */
const STATUSES: Readonly<Record<string, readonly [label: string, tone: Tone]>> = {
  publish: ["Published", "good"],
  future: ["Scheduled", "info"],
  draft: ["Draft", "neutral"],
  pending: ["Pending review", "neutral"],
  private: ["Private", "neutral"],
  trash: ["In the trash", "bad"],
};

export const STATUS_OPTIONS: readonly (readonly [status: string, label: string])[] = Object.entries(
  STATUSES,
).map(([status, [label]]) => [status, label]);

export const labelStatus = (status: string): string => STATUSES[status]?.[0] ?? status;

export const getStatusTone = (status: string): Tone => STATUSES[status]?.[1] ?? "neutral";

/** Returns the text of rendered HTML. The parsed document loads nothing and runs nothing. */
const plain = (html: string): string =>
  new DOMParser().parseFromString(withoutTags(html), "text/html").body.textContent?.trim() ?? "";

/**
 * Removes tags, which leaves the parser only text and entities. A parsed document runs no script,
 * but Chromium reports its event handlers as violations of the Content-Security-Policy.
 */
const withoutTags = (html: string): string => html.replace(/<[^<>]*>/g, "").replaceAll("<", "&lt;");

export const getText = ({ raw, rendered }: TextJson): string => raw ?? plain(rendered);

export const getTitle = ({ title, id }: Pick<RecordJson, "title" | "id">): string =>
  getText(title) || `(no title, ID ${id})`;

/** Formats a time of the site, `2026-11-22T09:00:00`, as `2026-11-22 09:00`. */
export const formatSiteTime = (date: string): string => date.slice(0, 16).replace("T", " ");

export const getAuthor = ({ _embedded }: Pick<RecordJson, "_embedded">): string =>
  _embedded?.author?.[0]?.name ?? "";

/** The path of the portal's API to a picture of the file; `undefined` for what is no picture. */
export function getPicture(
  { mime_type: type, media_details: details }: RecordJson,
  size: "thumbnail" | "large",
): string | undefined {
  const name = type?.startsWith("image/") ? nameOf(details ?? {}, size) : undefined;
  return name === undefined ? undefined : `content/file?name=${encodeURIComponent(name)}`;
}

/** Builds the file name of a version of a picture, which is in the same folder. */
function nameOf({ file, sizes }: MediaDetailsJson, size: string): string | undefined {
  const version = sizes?.[size];
  return file && version ? file.slice(0, file.lastIndexOf("/") + 1) + version.file : file;
}
