/**
 * The rules in which media differ from other post types: fields, status, the post they belong to,
 * and their files.
 */

import { parseUrl } from "../../core/parse-url.js";
import { toText } from "../../schema/coerce.js";
import type { Context, Json, Schema } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import {
  type FieldTarget,
  type FieldView,
  type PostField,
  type PostFields,
  rawTextArgument,
  readRaw,
} from "../posts/post-field.js";
import { postPath } from "../posts/post-links.js";
import type { MediaUploads, PermissionView, PostTypeRules, Values } from "../posts/post-type-handler.js";
import type { SiteIndex } from "../query/site-index.js";
import type { MediaFile } from "../records/records.js";
import { RestError, refusal } from "../rest/error.js";
import { ALL, EDIT, FULL } from "../rest/record-fields.js";
import type { RestRequest } from "../rest/types.js";
import type { Site } from "../site.js";
import { toWebUrl } from "../text/urls.js";
import { toImageMeta } from "./image-metadata.js";
import { missingSizes, uploadedImage } from "./image-versions.js";

/**
 * Whoever attaches an item to a post must be allowed to edit that post. As in WordPress, nobody may
 * upload to a post that does not exist.
 */
function authorizeAttaching({ values, input, caller }: RestRequest, { index, may }: PermissionView): void {
  const item = index.post(Number(values["id"] ?? 0));
  // A value that is not valid counts as well: `Allow` then lists no upload.
  const wanted = values["post"] ?? input["post"];
  if (wanted === undefined || wanted === null || Number(wanted) === 0) return;
  const parent = index.post(Number(wanted));
  const isAllowed =
    parent === undefined ? item !== undefined : parent.id === item?.parent || may(caller, "edit", parent);
  if (isAllowed) return;
  throw refusal(caller, "rest_cannot_edit", "Sorry, you are not allowed to upload media to this post.");
}

function assertParentIsPost(values: Values, index: SiteIndex): void {
  if (!values["post"] || index.post(Number(values["post"]))?.type !== "attachment") return;
  throw new RestError(400, "rest_invalid_param", "Invalid parent type.");
}

export const createMediaRules = (uploads: MediaUploads): PostTypeRules => ({
  fields: mediaFields,
  uploads,
  authorizeValues: authorizeAttaching,
  assertConsistent(values, index) {
    assertParentIsPost(values, index);
    // As in WordPress: only a theme can let audio and video have one.
    if (values["featured_media"] === undefined || values["featured_media"] === null) return;
    throw new RestError(
      400,
      "rest_no_featured_media",
      "This site does not support post thumbnails on attachments.",
    );
  },
  // An item is visible where its post is, unless it is private.
  resolveStatus: (status) => (status === "private" ? "private" : "inherit"),
  listLinks: ({ parent: id }, { index, to }) => {
    const parent = index.post(id);
    if (parent === undefined) return {};
    const link = { embeddable: true, post_type: parent.type, id, href: to(postPath(parent, index)) };
    return { "wp:attached-to": [link] };
  },
});

// The fields that media have in addition to those of posts: the file, and the texts about it.

const NO_FILE: MediaFile = { name: "", bytes: 0, altText: "", width: 0, height: 0, sizes: {} };

const getFile = ({ post }: FieldView): MediaFile => post.media ?? NO_FILE;

const isImage = ({ post }: FieldView): boolean => post.mimeType.startsWith("image/");

const textSchema = (description: string, context: Context[]): Schema => ({
  description,
  type: "object",
  context,
  maxLength: LENGTHS.content,
  properties: {
    raw: { description: "As it is stored.", type: "string", context: EDIT, maxLength: LENGTHS.content },
    rendered: {
      description: "As it is shown.",
      type: "string",
      context,
      readonly: true,
      maxLength: LENGTHS.content,
    },
  },
});

/** A caption is stored as the excerpt, a description as the content. */
const writeText =
  (name: "excerpt" | "content") =>
  (value: Json, { post, caller }: FieldTarget): void => {
    const raw = readRaw(value);
    if (raw === undefined) return;
    post.isTrusted = caller.has("unfiltered_html");
    post[name] = raw;
  };

/** Schema of a field that clients cannot write. */
const readonlySchema = (
  description: string,
  type: NonNullable<Schema["type"]>,
  context: Context[],
): Schema => ({ description, type, context, readonly: true });

/** A field that only images have. */
const imageField = (
  description: string,
  type: NonNullable<Schema["type"]>,
  read: (file: MediaFile) => Json,
): PostField => ({
  schema: { ...readonlySchema(description, type, EDIT), sometimes: true },
  read: (view) => (isImage(view) ? read(getFile(view)) : undefined),
});

/** Returns the file and its smaller versions, in WordPress's form. */
function readDetails(view: FieldView): Json {
  const file = getFile(view);
  const { name, width, height, bytes, sizes, original, parentImage } = file;
  if (!isImage(view)) return { filesize: bytes, sizes: {} };
  const all = Object.entries(sizes).map(([size, version]) => [
    size,
    {
      file: getFileBaseName(version.name),
      width: version.width,
      height: version.height,
      filesize: version.bytes,
      mime_type: version.mimeType,
      source_url: getMediaUrl(file, view.site, version.name),
    },
  ]);
  const full = {
    file: getFileBaseName(name),
    width,
    height,
    mime_type: view.post.mimeType,
    source_url: getMediaUrl(file, view.site),
  };
  return {
    width,
    height,
    file: name,
    filesize: bytes,
    sizes: { ...Object.fromEntries(all), ...(all.length > 0 ? { full } : {}) },
    image_meta: toImageMeta(file),
    ...(original === undefined ? {} : { original_image: getFileBaseName(original.name) }),
    ...(parentImage === undefined
      ? {}
      : { parent_image: { attachment_id: parentImage.id, file: parentImage.name } }),
  };
}

const mediaFields: PostFields = {
  description: {
    schema: textSchema("The attachment description.", FULL),
    read: async ({ post, site, budget }) => ({
      raw: post.content,
      rendered: await site.render.content(post, budget),
    }),
    html: "content",
    write: writeText("content"),
    argument: rawTextArgument(LENGTHS.content),
    isCostly: true,
  },
  caption: {
    schema: textSchema("The attachment caption.", ALL),
    read: async ({ post, site }) => ({ raw: post.excerpt, rendered: await site.render.caption(post) }),
    html: "excerpt",
    write: writeText("excerpt"),
    argument: rawTextArgument(LENGTHS.content),
    isCostly: true,
  },
  alt_text: {
    schema: {
      description: "Alternative text to display when attachment is not displayed.",
      type: "string",
      maxLength: LENGTHS.title,
      context: ALL,
    },
    read: (view) => getFile(view).altText,
    write: (value, { post, site }) => {
      post.media = { ...(post.media ?? NO_FILE), altText: site.plainText(toText(value)) };
    },
  },
  media_type: {
    schema: {
      description: "Attachment type.",
      type: "string",
      enum: ["image", "file"],
      context: ALL,
      readonly: true,
    },
    read: (view) => (isImage(view) ? "image" : "file"),
  },
  mime_type: {
    schema: readonlySchema("The attachment MIME type.", "string", ALL),
    read: ({ post }) => post.mimeType,
  },
  media_details: {
    schema: readonlySchema("Details about the media file, specific to its type.", "object", ALL),
    read: readDetails,
  },
  post: {
    schema: {
      description: "The ID for the associated post of the attachment.",
      type: "integer",
      context: FULL,
      // WordPress returns null if there is no such post.
      answered: { type: ["integer", "null"] },
    },
    read: ({ post }) => post.parent || null,
    write: (value, { post }) => {
      post.parent = Number(value);
    },
  },
  source_url: {
    schema: readonlySchema("URL to the original attachment file.", "string", ALL),
    read: (view) => getMediaUrl(getFile(view), view.site),
  },
  missing_image_sizes: {
    schema: readonlySchema("List of the missing image sizes of the attachment.", "array", EDIT),
    read: (view) => (isImage(view) ? missingSizes(getFile(view)).map(({ size }) => size) : []),
  },
  filename: {
    schema: readonlySchema("Original attachment file name.", "string", FULL),
    read: (view) => getFileBaseName(uploadedImage(getFile(view)).name),
  },
  filesize: {
    schema: readonlySchema("Attachment file size, in bytes.", "integer", FULL),
    read: (view) => uploadedImage(getFile(view)).bytes,
  },
  exif_orientation: imageField(
    "EXIF orientation value, 1 for upright.",
    "integer",
    ({ orientation }) => orientation ?? 1,
  ),
  image_output_format: imageField(
    "Format that smaller versions are made in, if another.",
    ["string", "null"],
    () => null,
  ),
  image_quality: imageField("Quality that smaller versions are made with, by size.", "object", () => ({
    default: 82,
    sizes: [],
  })),
  image_save_progressive: imageField(
    "Whether smaller versions are saved to be shown in steps.",
    "boolean",
    () => false,
  ),
};

// The URLs of media files, which may be on another host.

/** Returns the last segment of the name of a stored file. */
export const getFileBaseName = (name: string): string => name.slice(name.lastIndexOf("/") + 1);

/**
 * Returns the URL of a file of the item: the one shown, or the one with `name`. A stored record may
 * hold a URL that an earlier version took from an import unchecked, so it is checked here.
 */
export function getMediaUrl(file: MediaFile, site: Site, name = file.name): string {
  const whole = file.elsewhere === undefined ? "" : toWebUrl(file.elsewhere);
  if (whole === "") return site.upload(name);
  return name === file.name ? whole : (parseUrl(`./${getFileBaseName(name)}`, whole)?.href ?? whole);
}
