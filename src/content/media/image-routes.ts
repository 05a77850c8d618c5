/** The routes that work on the file of a media item: making smaller versions of an image, and editing it. */

import { isPostbellError } from "../../core/errors.js";
import type { Json } from "../../schema/types.js";
import type { Collection } from "../collections.js";
import { createPostPermissions } from "../posts/post-permissions.js";
import type { PostRenderer } from "../posts/post-renderer.js";
import { itemSchema } from "../posts/post-schema.js";
import { applyPostValues, resolvePostDates } from "../posts/write-post.js";
import type { MediaFile, Post } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import { RestError, refusal } from "../rest/error.js";
import type { RestRequest, RestResponse, RestRoute } from "../rest/types.js";
import type { Site } from "../site.js";
import { editArguments, idArgument } from "./image-arguments.js";
import { type Modifier, planEdits } from "./image-edits.js";
import type { ImageRefusal } from "./image-tool.js";
import { uploadedImage } from "./image-versions.js";
import { listFileNames } from "./owned-files.js";
import type { StoredImages } from "./stored-images.js";
import { toUploadFolder } from "./stored-name.js";

export interface ImageRoutesOptions {
  readonly library: ContentRepository;
  readonly site: Site;
  readonly items: PostRenderer;
  /** `undefined` where the host gave nothing that works on images. */
  readonly images: StoredImages | undefined;
  /** `core/v2` */
  readonly namespace: string;
}

export function imageRoutes(
  collection: Collection,
  { library, site, items, images: given, namespace }: ImageRoutesOptions,
): readonly RestRoute[] {
  const { index } = library;
  const rights = createPostPermissions(collection, index);

  const images = (): StoredImages => {
    if (given !== undefined) return given;
    throw imageRefused("unavailable");
  };

  async function load({ values }: RestRequest): Promise<Post> {
    const { id } = rights.find(Number(values["id"]));
    const [post] = await library.posts([id]);
    if (post === undefined) throw new RestError(404, "rest_post_invalid_id", "Invalid post ID.");
    return post;
  }

  async function postProcess(request: RestRequest): Promise<RestResponse> {
    const { caller, url } = request;
    const post = await load(request);
    const { media, mimeType } = post;
    if (media !== null && mimeType.startsWith("image/")) await addVersions(request, media, mimeType);
    const item = items.of(await load(request), { context: "edit", caller, url });
    return { status: 200, headers: {}, body: { item } };
  }

  /** Another request may do the same meanwhile: what the record has by then stays. */
  async function addVersions(request: RestRequest, file: MediaFile, mimeType: string): Promise<void> {
    const completed = await images().complete(await images().measured(file, mimeType), mimeType);
    if (completed.file === file) return;
    let kept: MediaFile | null = null;
    try {
      await library.change(async (draft) => {
        kept = null;
        const post = await load(request);
        rights.update(request, post);
        if (post.media === null || uploadedImage(post.media).name !== uploadedImage(file).name) return;
        const { altText, sizes, original } = post.media;
        const shown = original === undefined ? completed.file : post.media;
        kept = { ...shown, altText, sizes: { ...completed.file.sizes, ...sizes } };
        draft.putPost({ ...post, media: kept });
      });
    } catch (error) {
      await completed.discard();
      throw error;
    }
    await completed.discard(kept);
  }

  async function edit(request: RestRequest): Promise<RestResponse> {
    const { caller, url, values } = request;
    const source = await load(request);
    const { media, mimeType } = source;
    const edits = images();
    if (media === null || !mimeType.startsWith("image/") || !isAddressOf(media, values["src"], site)) {
      throw unknownAttachment();
    }
    const measured = await edits.measured(media, mimeType);
    const plan = planEdits(modifiersOf(request), uploadedImage(measured), edits.maxPixels);
    if (!plan.ok) throw new RestError(400, plan.code, plan.message);
    const { operations } = plan;
    const folder = toUploadFolder(site.zone.toLocal(library.now()));
    const edited = await edits.edit(media, { mimeType, operations, folder });
    if (typeof edited === "string") throw imageRefused(edited);
    const parentImage = { id: source.id, name: uploadedImage(media).name };
    const id = await stored(request, { ...edited.file, parentImage }).catch(async (error: unknown) => {
      await edited.discard();
      throw error;
    });
    const item = items.of(await load({ ...request, values: { id } }), { context: "view", caller, url });
    const location = url(`/${namespace}/${collection.base}/${id}`);
    return { status: 201, headers: { location: location }, body: { item } };
  }

  /** As a media item of its own, with the texts of the one that it was made from where none are given. Resolves with its id. */
  async function stored(request: RestRequest, file: MediaFile): Promise<number> {
    const { caller, values } = request;
    return library.change(async (draft) => {
      const source = await load(request);
      rights.update(request, source);
      const written = applyPostValues(
        {
          title: source.title,
          caption: source.excerpt,
          description: source.content,
          alt_text: source.media?.altText ?? "",
          ...withoutNull(values),
        },
        null,
        await draft.newId("post"),
        { collection, caller, site, index, now: library.now(), defaultCategory: library.defaultCategory() },
        resolvePostDates({}, site),
      );
      const isOwn = request.isGiven("caption") && request.isGiven("description");
      draft.putPost({
        ...written,
        mimeType: source.mimeType,
        // What somebody else wrote does not become trusted by being copied.
        isTrusted: written.isTrusted && (isOwn || source.isTrusted),
        media: { ...file, altText: written.media?.altText ?? "" },
      });
      return written.id;
    });
  }

  const permitEdit = (request: RestRequest): void => {
    if (!request.caller.has("upload_files")) {
      throw refusal(
        request.caller,
        "rest_cannot_edit_image",
        "Sorry, you are not allowed to upload media on this site.",
      );
    }
    rights.update(request);
  };
  const schema = itemSchema(collection);
  const action = { type: "string", enum: ["create-image-subsizes"], required: true } as const;
  return [
    {
      namespace,
      path: `/${collection.base}/:id/post-process`,
      endpoints: [
        {
          methods: ["POST"],
          args: { id: idArgument, action },
          described: {
            summary: "Make the missing smaller versions of an image",
            status: 200,
            schema,
            errors: [501],
          },
          permit: rights.update,
          handle: withFile(postProcess),
        },
      ],
    },
    {
      namespace,
      path: `/${collection.base}/:id/edit`,
      endpoints: [
        {
          methods: ["POST"],
          args: editArguments(collection),
          described: { summary: "Edit an image into a new one", context: "view", schema, errors: [501] },
          permit: permitEdit,
          handle: withFile(edit),
        },
      ],
    },
  ];
}

const unknownAttachment = (): RestError =>
  new RestError(404, "rest_unknown_attachment", "Unable to get meta information for file.");

/** A file that the host has lost is no failure of the service. */
const withFile =
  (handle: (request: RestRequest) => Promise<RestResponse>) =>
  async (request: RestRequest): Promise<RestResponse> => {
    try {
      return await handle(request);
    } catch (error) {
      throw isPostbellError(error, "not_found") ? unknownAttachment() : error;
    }
  };

/** Whether `src` is the address of one of the files, as an answer of the site writes it. It is compared, and never fetched. */
function isAddressOf(media: MediaFile, src: Json | undefined, site: Site): boolean {
  return listFileNames(media).some((name) => {
    const address = site.upload(name);
    return src === address || src === encodeURI(address);
  });
}

/** The older fields count where there are no modifiers: a rotation first, then a crop, for which all four are needed. */
function modifiersOf({ values }: RestRequest): readonly Modifier[] {
  const { modifiers, rotation, x, y, width, height } = values;
  if (Array.isArray(modifiers)) return modifiers as unknown as readonly Modifier[];
  const older: Modifier[] = [];
  if (typeof rotation === "number") older.push({ type: "rotate", args: { angle: rotation } });
  const area = [x, y, width, height];
  if (area.every((side) => typeof side === "number")) {
    const [left = 0, top = 0, across = 0, down = 0] = area as readonly number[];
    older.push({ type: "crop", args: { left, top, width: across, height: down } });
  }
  if (older.length > 0) return older;
  throw new RestError(
    400,
    "rest_image_not_edited",
    "The image was not edited. Edit the image before applying the changes.",
  );
}

const withoutNull = (values: RestRequest["values"]): RestRequest["values"] =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null && value !== undefined));

const REFUSALS: {
  readonly [refusal in ImageRefusal | "unavailable"]: readonly [
    status: number,
    code: string,
    message: string,
  ];
} = {
  busy: [503, "rest_image_busy", "Too many images are being worked on; try again later."],
  animated: [400, "rest_cannot_edit_file_type", "An image that moves cannot be edited."],
  too_large: [400, "rest_image_too_large", "The image is too large to be edited."],
  unreadable: [400, "rest_image_unreadable", "The file cannot be read as an image."],
  unavailable: [501, "rest_image_editing_unavailable", "This site does not edit images."],
  too_slow: [400, "rest_image_too_slow", "Editing the image takes too long."],
};

const imageRefused = (refused: keyof typeof REFUSALS): RestError =>
  new RestError(...REFUSALS[refused], refused === "busy" ? { retryAfter: 5 } : {});
