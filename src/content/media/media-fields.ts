/** The fields that media items have beside those of a post: what is said of the file, and the texts that go with it. */

import { toText } from "../../schema/text-of.js";
import type { Context, Json, Schema } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import {
  type FieldTarget,
  type FieldView,
  type PostField,
  passthrough,
  readRaw,
} from "../posts/post-fields.js";
import { sanitiseText } from "../posts/sanitised-text.js";
import type { MediaFile } from "../records/records.js";
import { ALL, EDIT, FULL } from "../rest/record-fields.js";
import { missingSizes, uploadedImage } from "./image-versions.js";

const NO_FILE: MediaFile = { name: "", bytes: 0, altText: "", width: 0, height: 0, sizes: {} };

const fileOf = ({ post }: FieldView): MediaFile => post.media ?? NO_FILE;

const isImage = ({ post }: FieldView): boolean => post.mimeType.startsWith("image/");

const textSchema = (description: string, context: readonly Context[]): Schema => ({
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
  (value: Json, { post, caller, site }: FieldTarget): void => {
    const raw = readRaw(value);
    if (raw === undefined) return;
    post.isTrusted = caller.has("unfiltered_html");
    post[name] = post.isTrusted ? raw : sanitiseText(raw, name, site);
  };

const OF_IMAGES: Schema = { sometimes: true };

const readonly = (
  description: string,
  type: NonNullable<Schema["type"]>,
  context: readonly Context[],
  read: PostField["read"],
  more: Schema = {},
): PostField => ({ schema: { description, type, context, readonly: true, ...more }, read });

/** Where a file of the item is: beside the item's own, when that is not here. */
function addressOf({ elsewhere, name: own }: MediaFile, name: string, { upload }: FieldView["site"]): string {
  if (elsewhere === undefined || elsewhere === "") return upload(name);
  return name === own ? elsewhere : elsewhere.slice(0, elsewhere.lastIndexOf("/") + 1) + basename(name);
}

const basename = (name: string): string => name.slice(name.lastIndexOf("/") + 1);

/** The file itself, and its smaller versions, as the reference describes them. */
function details(view: FieldView): Json {
  const file = fileOf(view);
  const { name, width, height, bytes, sizes, original, parentImage } = file;
  if (!isImage(view)) return { filesize: bytes, sizes: {} };
  const all = Object.entries(sizes).map(([size, version]) => [
    size,
    {
      file: basename(version.name),
      width: version.width,
      height: version.height,
      filesize: version.bytes,
      mime_type: version.mimeType,
      source_url: addressOf(file, version.name, view.site),
    },
  ]);
  const full = {
    file: basename(name),
    width,
    height,
    mime_type: view.post.mimeType,
    source_url: addressOf(file, name, view.site),
  };
  return {
    width,
    height,
    file: name,
    filesize: bytes,
    sizes: { ...Object.fromEntries(all), ...(all.length > 0 ? { full } : {}) },
    ...(original === undefined ? {} : { original_image: basename(original.name) }),
    ...(parentImage === undefined
      ? {}
      : { parent_image: { attachment_id: parentImage.id, file: parentImage.name } }),
  };
}

export const mediaFields: { readonly [name: string]: PostField } = {
  alt_text: {
    schema: {
      description: "Alternative text to display when attachment is not displayed.",
      type: "string",
      maxLength: LENGTHS.title,
      context: ALL,
    },
    read: (view) => fileOf(view).altText,
    write: (value, { post, site }) => {
      post.media = { ...(post.media ?? NO_FILE), altText: site.plainText(toText(value)) };
    },
  },
  caption: {
    schema: textSchema("The attachment caption.", ALL),
    read: ({ post, site }) => ({ raw: post.excerpt, rendered: site.render.caption(post) }),
    write: writeText("excerpt"),
    argument: passthrough,
  },
  description: {
    schema: textSchema("The attachment description.", FULL),
    read: ({ post, site }) => ({ raw: post.content, rendered: site.render.content(post) }),
    write: writeText("content"),
    argument: passthrough,
  },
  media_type: {
    ...readonly("Attachment type.", "string", ALL, (view) => (isImage(view) ? "image" : "file")),
    schema: {
      description: "Attachment type.",
      type: "string",
      enum: ["image", "file"],
      context: ALL,
      readonly: true,
    },
  },
  mime_type: readonly("The attachment MIME type.", "string", ALL, ({ post }) => post.mimeType),
  media_details: readonly("Details about the media file, specific to its type.", "object", ALL, details),
  post: {
    schema: {
      description: "The ID for the associated post of the attachment.",
      type: "integer",
      context: FULL,
      // The reference answers null for none.
      answered: { type: ["integer", "null"] },
    },
    read: ({ post }) => post.parent || null,
    write: (value, { post }) => {
      post.parent = Number(value);
    },
  },
  source_url: readonly("URL to the original attachment file.", "string", ALL, (view) =>
    addressOf(fileOf(view), fileOf(view).name, view.site),
  ),
  filename: readonly("Original attachment file name.", "string", FULL, (view) =>
    basename(uploadedImage(fileOf(view)).name),
  ),
  filesize: readonly(
    "Attachment file size, in bytes.",
    "integer",
    FULL,
    (view) => uploadedImage(fileOf(view)).bytes,
  ),
  missing_image_sizes: readonly(
    "List of the missing image sizes of the attachment.",
    "array",
    EDIT,
    (view) => (isImage(view) ? missingSizes(fileOf(view)).map(({ size }) => size) : []),
  ),
  exif_orientation: readonly(
    "EXIF orientation value, 1 for upright.",
    "integer",
    EDIT,
    (view) => (isImage(view) ? (fileOf(view).orientation ?? 1) : undefined),
    OF_IMAGES,
  ),
  image_output_format: readonly(
    "Format that smaller versions are made in, if another.",
    ["string", "null"],
    EDIT,
    (view) => (isImage(view) ? null : undefined),
    OF_IMAGES,
  ),
  image_quality: readonly(
    "Quality that smaller versions are made with, by size.",
    "object",
    EDIT,
    (view) => (isImage(view) ? { default: 82, sizes: [] } : undefined),
    OF_IMAGES,
  ),
  image_save_progressive: readonly(
    "Whether smaller versions are saved to be shown in steps.",
    "boolean",
    EDIT,
    (view) => (isImage(view) ? false : undefined),
    OF_IMAGES,
  ),
};
