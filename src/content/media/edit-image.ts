/** Edits an image into a new media item. */

import { isPostbellError } from "../../core/errors.js";
import type { Json } from "../../schema/types.js";
import type { PostBase } from "../posts/post-base.js";
import { resolvePostDates } from "../posts/post-dates.js";
import type { PostResource } from "../posts/post-resource.js";
import { sanitiseValues } from "../posts/write-post.js";
import type { MediaFile, Post } from "../records/records.js";
import { listFileNames } from "../records/unique-names.js";
import { RestError } from "../rest/error.js";
import type { RestEndpoint, RestRequest, RestResponse } from "../rest/types.js";
import type { Site } from "../site.js";
import { toUploadFolder } from "./file-name.js";
import { type Modifier, planEdits } from "./image-edits.js";
import type { ImageRefusal } from "./image-tool.js";
import { uploadedImage } from "./image-versions.js";
import type { StoredImages } from "./stored-images.js";

export function createEditImage(
  { type, load, permissions, render, createWriteContext }: PostResource,
  { repository, site, namespace }: PostBase,
  getImages: () => StoredImages,
): (request: RestRequest) => Promise<RestResponse> {
  /** Returns the edited file, which no record names yet. */
  async function editFile({ media, mimeType }: Post, { values }: RestRequest) {
    const images = getImages();
    if (media === null || !mimeType.startsWith("image/") || !isAddressOf(media, values["src"], site)) {
      throw unknownAttachment();
    }
    const measured = await images.measured(media, mimeType);
    const plan = planEdits(readModifiers(values), uploadedImage(measured), images.maxPixels);
    if (!plan.ok) throw new RestError(400, plan.code, plan.message);
    const folder = toUploadFolder(site.zone.toLocal(repository.now()));
    const edited = await images.edit(media, { mimeType, operations: plan.operations, folder });
    if (typeof edited === "string") throw imageRefused(edited);
    return { ...edited, name: uploadedImage(media).name };
  }

  /** Stores the file as a new media item. Missing texts come from the source. */
  async function storeItem(request: RestRequest, source: Post, file: MediaFile): Promise<number> {
    const fields = { ...readTexts(source), ...withoutNull(request.values) };
    const values = await sanitiseValues(fields, request, type, site);
    return repository.change(async (transaction) => {
      permissions.update(request, await load(source.id));
      const id = await transaction.newId("post");
      const dates = resolvePostDates({}, site);
      const post = type.write({ values, previous: null, id, dates }, createWriteContext(request));
      const hasOwnTexts = request.isGiven("caption") && request.isGiven("description");
      transaction.putPost({
        ...post,
        mimeType: source.mimeType,
        // A copy of a text is trusted only if the text was.
        isTrusted: post.isTrusted && (hasOwnTexts || source.isTrusted),
        media: {
          ...file,
          altText: post.media?.altText ?? "",
          ...(source.media?.metadata && { metadata: source.media.metadata }),
        },
      });
      return id;
    });
  }

  return async (request) => {
    const source = await load(Number(request.values["id"]));
    const { file, name, discard } = await editFile(source, request);
    const edited = { ...file, parentImage: { id: source.id, name } };
    const id = await storeItem(request, source, edited).catch(async (error: unknown) => {
      await discard();
      throw error;
    });
    return {
      status: 201,
      headers: { location: request.url(`/${namespace}/${type.collection.base}/${id}`) },
      body: { item: await render(await load(id), request, "view") },
    };
  };
}

const readTexts = ({ title, excerpt, content, media }: Post): { [field: string]: string } => ({
  title,
  caption: excerpt,
  description: content,
  alt_text: media?.altText ?? "",
});

/**
 * True if `src` is the address of one of the item's files, as responses of the site write it, with
 * or without a query. The address is only compared, never fetched.
 */
function isAddressOf(media: MediaFile, src: Json | undefined, site: Site): boolean {
  const source = typeof src === "string" ? src.replace(/\?.*$/s, "") : "";
  return listFileNames(media).some((name) => {
    const address = site.upload(name);
    return source === address || source === encodeURI(address);
  });
}

/**
 * Without `modifiers`, the deprecated arguments count: first the rotation, then the crop, which
 * needs all of its four sides.
 */
function readModifiers({ modifiers, rotation, x, y, width, height }: RestRequest["values"]): Modifier[] {
  if (Array.isArray(modifiers)) return modifiers as unknown as Modifier[];
  const deprecated: Modifier[] = [];
  if (typeof rotation === "number") deprecated.push({ type: "rotate", args: { angle: rotation } });
  const area = [x, y, width, height];
  if (area.every((side) => typeof side === "number")) {
    const [left = 0, top = 0, across = 0, down = 0] = area as number[];
    deprecated.push({ type: "crop", args: { left, top, width: across, height: down } });
  }
  if (deprecated.length > 0) return deprecated;
  throw new RestError(
    400,
    "rest_image_not_edited",
    "The image was not edited. Edit the image before applying the changes.",
  );
}

const withoutNull = (values: RestRequest["values"]): RestRequest["values"] =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null && value !== undefined));

// The errors of the routes that work on images.

type Refusal = ImageRefusal | "unavailable";

const REFUSALS: {
  [refusal in Refusal]: [status: number, code: string, message: string];
} = {
  busy: [503, "rest_image_busy", "Too many images are being worked on; try again later."],
  animated: [400, "rest_cannot_edit_file_type", "An image that moves cannot be edited."],
  too_large: [400, "rest_image_too_large", "The image is too large to be edited."],
  unreadable: [400, "rest_image_unreadable", "The file cannot be read as an image."],
  unavailable: [501, "rest_image_editing_unavailable", "This site does not edit images."],
  too_slow: [400, "rest_image_too_slow", "Editing the image takes too long."],
};

/** Seconds after which a place for another image is probably free. */
const RETRY_AFTER = 5;

export const imageRefused = (refused: Refusal): RestError =>
  new RestError(...REFUSALS[refused], refused === "busy" ? { retryAfter: RETRY_AFTER } : {});

const unknownAttachment = (): RestError =>
  new RestError(404, "rest_unknown_attachment", "Unable to get meta information for file.");

/** Turns a file that the host has lost into a 404: it is not a failure of the service. */
export const withFile =
  (handle: RestEndpoint["handle"]): RestEndpoint["handle"] =>
  async (request) => {
    try {
      return await handle(request);
    } catch (error) {
      throw isPostbellError(error, "not_found") ? unknownAttachment() : error;
    }
  };
