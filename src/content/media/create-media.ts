/** Makes a media item of the file that came with a request. */

import type { Logger } from "../../core/logger.js";
import type { BodyPace } from "../../http/body-chunks.js";
import type { HttpRequest } from "../../http/types.js";
import type { Caller } from "../auth/caller.js";
import type { FileStore } from "../files.js";
import { readRaw } from "../posts/post-fields.js";
import type { MediaUploads } from "../posts/post-routes.js";
import { RestError } from "../rest/error.js";
import type { ReceivedBody, RestRequest } from "../rest/types.js";
import type { Site } from "../site.js";
import { listFileNames } from "./owned-files.js";
import { publishMedia } from "./publish-media.js";
import { noData, type StagedUpload, stageUpload } from "./staged-upload.js";
import type { StoredImages } from "./stored-images.js";

const FIELDS = /^application\/(?:[^\s/,+;]+\+)?(?:json|x-www-form-urlencoded)\s*(?:;|$)/i;
const NO_FIELDS = Object.freeze(Object.create(null));

/** `files`: where the host keeps them; without it every upload is refused. `images`: makes smaller versions, if it is there. `limit`: bytes of one file. */
export function createMediaCreator({
  files,
  images,
  limit,
  pace,
  site,
  now,
  logger,
}: {
  readonly files: FileStore | undefined;
  readonly images: StoredImages | undefined;
  readonly limit: number;
  readonly pace: BodyPace;
  readonly site: Site;
  readonly now: () => number;
  readonly logger: Logger;
}): MediaUploads {
  const uploads = new WeakMap<ReceivedBody, StagedUpload>();
  const made = new WeakSet<StagedUpload>();

  async function receive(request: HttpRequest, caller: Caller): Promise<ReceivedBody | undefined> {
    if (FIELDS.test(request.headers["content-type"] ?? "")) return undefined;
    // Not a byte is taken from somebody who may not upload: the permission is refused then.
    if (files === undefined || !caller.has("upload_files")) {
      return { fields: NO_FIELDS, release: async () => {} };
    }
    const upload = await stageUpload(request, { files, limit, pace, maxPixels: images?.maxPixels });
    const received: ReceivedBody = {
      fields: upload.fields,
      async release() {
        if (!made.has(upload)) await upload.discard();
      },
    };
    uploads.set(received, upload);
    return received;
  }

  return {
    receive,
    async take({ received, values }: RestRequest) {
      if (files === undefined) {
        throw new RestError(
          501,
          "rest_upload_unavailable",
          "This site keeps no files, so nothing can be uploaded.",
        );
      }
      const upload = received && uploads.get(received);
      if (upload === undefined) throw noData();
      const { file, title, discard } = await publishMedia(upload, site.zone.toLocal(now()), images);
      return {
        // An empty title is none, as in the reference.
        values: readRaw(values["title"] ?? null) ? {} : { title },
        complete(post) {
          made.add(upload);
          return {
            ...post,
            mimeType: upload.mimeType,
            media: { ...file, altText: post.media?.altText ?? "" },
          };
        },
        discard,
      };
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
