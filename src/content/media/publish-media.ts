/** Publishes a staged file, with the smaller versions of an image. */

import type { MediaFile } from "../records/records.js";
import type { StagedUpload } from "./staged-upload.js";
import type { StoredImages } from "./stored-images.js";

export interface PublishedMedia {
  readonly file: MediaFile;
  readonly title: string;
  /** Removes all that was stored. To be called where no record came to name it. */
  readonly discard: () => Promise<void>;
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
