/** Creates a media item from the file that comes with a request. */

import type { HttpRequest } from "../../http/types.js";
import type { JsonObject } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import type { ContentBase } from "../content-base.js";
import type { FileStore } from "../files.js";
import { isEmptyText, readRaw } from "../posts/post-field.js";
import type { MediaUploads, NewMediaFile } from "../posts/post-type-handler.js";
import type { ImageMetadata, MediaFile } from "../records/records.js";
import { listFileNames } from "../records/unique-names.js";
import { RestError } from "../rest/error.js";
import type { ReceivedBody, RestRequest } from "../rest/types.js";
import { noData } from "./stage-file.js";
import { noContentDisposition, type StagedUpload, stageUpload } from "./staged-upload.js";
import type { StoredImages } from "./stored-images.js";

const FIELDS_TYPE = /^application\/(?:[^\s/,+;]+\+)?(?:json|x-www-form-urlencoded)\s*(?:;|$)/i;
const NO_FIELDS: JsonObject = Object.freeze(Object.create(null));

/** A body with a file. It belongs to the request until a stored record owns the file. */
class ReceivedUpload implements ReceivedBody {
  upload: StagedUpload;
  isStored = false;

  constructor(upload: StagedUpload) {
    this.upload = upload;
  }

  get fields(): JsonObject {
    return this.upload.fields;
  }

  release = async (): Promise<void> => {
    if (!this.isStored) await this.upload.discard();
  };
}

interface MediaBase extends Pick<ContentBase, "clock" | "logger" | "site" | "repository"> {
  /** `undefined`: the host stores no files, and every upload is refused. */
  files: FileStore | undefined;
  /** Makes smaller versions, if the host can work on images. */
  images: StoredImages | undefined;
  limits: {
    uploadBytes: number;
    uploadBytesPerSecond: number;
    bodyMs: number;
  };
}

export function createMediaUploads(base: MediaBase): MediaUploads {
  const { files, images, clock, logger } = base;
  const { uploadBytes: limit, uploadBytesPerSecond: bytesPerSecond, bodyMs: ms } = base.limits;
  const pace = { clock, ms, bytesPerSecond };

  async function receive(request: HttpRequest, caller: Caller): Promise<ReceivedBody | undefined> {
    const { "content-type": type = "", "content-disposition": disposition } = request.headers;
    if (FIELDS_TYPE.test(type) && disposition === undefined) return undefined;
    // Reads no byte from a caller who may not upload: `permit` refuses the request.
    if (files === undefined || !caller.has("upload_files")) {
      return { fields: NO_FIELDS, release: async () => {} };
    }
    return new ReceivedUpload(
      await stageUpload(request, { files, limit, pace, maxPixels: images?.maxPixels }),
    );
  }

  return {
    receive,
    take: async (request) => {
      if (files !== undefined) return takeFile(request, base);
      throw new RestError(
        501,
        "rest_upload_unavailable",
        "This site keeps no files, so nothing can be uploaded.",
      );
    },
    async remove({ media }) {
      if (files === undefined || media === null) return;
      const names = listFileNames(media);
      try {
        await Promise.all(names.map((name) => files.remove(name)));
      } catch (error) {
        logger.warn({ error, names }, "the files of a deleted media item were not removed");
      }
    },
  };
}

/** True if the request has no body, by its headers. */
const isEmpty = (headers: RestRequest["headers"]): boolean =>
  (headers["content-length"] ?? "0") === "0" && headers["transfer-encoding"] === undefined;

async function takeFile(
  { received, values, headers }: RestRequest,
  { site, repository, images }: MediaBase,
): Promise<NewMediaFile> {
  if (!(received instanceof ReceivedUpload)) throw isEmpty(headers) ? noData() : noContentDisposition();
  const { upload } = received;
  const { file, title, discard } = await publishMedia(upload, site.zone.toLocal(repository.now()), images);
  return {
    values: withoutGiven({ title, ...listTexts(file.metadata, site.filteredCharacters) }, values),
    complete(post) {
      received.isStored = true;
      return {
        ...post,
        mimeType: upload.mimeType,
        media: { ...file, altText: post.media?.altText ?? "" },
      };
    },
    discard,
  };
}

/**
 * Returns the texts that an image says about itself, as values of the request. A number is no
 * title, since it would make a slug that looks like an id.
 */
function listTexts(
  { title = "", caption = "", altText = "" }: ImageMetadata = {},
  maxCharacters: number,
): { [name: string]: string } {
  const texts = { title: /^\s*[\d.]+\s*$/.test(title) ? "" : title, caption, alt_text: altText };
  return Object.fromEntries(
    Object.entries(texts).filter(([, text]) => text !== "" && text.length <= maxCharacters),
  );
}

/** Like in WordPress, an empty text of the client counts as missing. */
const withoutGiven = (
  defaults: { [name: string]: string },
  values: RestRequest["values"],
): { [name: string]: string } =>
  Object.fromEntries(
    Object.entries(defaults).filter(([name]) => isEmptyText(readRaw(values[name] ?? null) ?? "")),
  );

// Publishes a staged file, with the smaller versions of an image.

interface PublishedMedia {
  file: MediaFile;
  title: string;
  /** Removes all that was stored. To be called where no record came to name it. */
  discard: () => Promise<void>;
}

/**
 * `localTime`: as `StagedUpload.publish` takes it. `images`: `undefined` where the site makes no
 * versions. Errors: what the files throw; nothing is left then.
 */
export async function publishMedia(
  upload: StagedUpload,
  localTime: number,
  images: StoredImages | undefined,
): Promise<PublishedMedia> {
  try {
    const { file, title } = await upload.publish(localTime);
    const isImage = upload.mimeType.startsWith("image/");
    const whole = isImage ? await images?.complete(file, upload.mimeType) : undefined;
    return {
      file: whole?.file ?? file,
      title,
      async discard() {
        await whole?.discard();
        await upload.discard();
      },
    };
  } catch (error) {
    await upload.discard();
    throw error;
  }
}
