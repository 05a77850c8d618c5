/** Makes the smaller versions that an image lacks. */

import type { PostResource } from "../posts/post-resource.js";
import type { MediaFile } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import type { RestRequest, RestResponse } from "../rest/types.js";
import { uploadedImage } from "./image-versions.js";
import type { StoredImages } from "./stored-images.js";

export function createAddImageVersions(
  { load, permissions, render }: PostResource,
  {
    repository,
    getImages,
  }: { readonly repository: ContentRepository; readonly getImages: () => StoredImages },
): (request: RestRequest) => Promise<RestResponse> {
  /** Versions that another request has stored in the meantime stay. */
  async function addVersions(request: RestRequest, file: MediaFile, mimeType: string): Promise<void> {
    const images = getImages();
    const completed = await images.complete(await images.measured(file, mimeType), mimeType);
    if (completed.file === file) return;
    let stored: MediaFile | null = null;
    try {
      await repository.change(async (transaction) => {
        stored = null;
        const post = await load(Number(request.values["id"]));
        permissions.update(request, post);
        if (post.media === null || uploadedImage(post.media).name !== uploadedImage(file).name) return;
        const { altText, sizes, original } = post.media;
        const shown = original === undefined ? completed.file : post.media;
        stored = { ...shown, altText, sizes: { ...completed.file.sizes, ...sizes } };
        transaction.putPost({ ...post, media: stored });
      });
    } catch (error) {
      await completed.discard();
      throw error;
    }
    await completed.discard(stored);
  }

  return async (request) => {
    const id = Number(request.values["id"]);
    const { media, mimeType } = await load(id);
    if (media !== null && mimeType.startsWith("image/")) await addVersions(request, media, mimeType);
    return { status: 200, headers: {}, body: { item: await render(await load(id), request, "edit") } };
  };
}
