/**
 * Previews the content of a post before it is saved, for the host. There is no route: the REST
 * interface renders what is stored.
 */

import { PostbellError } from "../../core/errors.js";
import { readCallArguments } from "../../core/known-names.js";
import { checkUserId } from "../callers.js";
import { RestError, refusal } from "../rest/error.js";
import { countSanitised } from "../rest/sanitised-characters.js";
import type { PostBase } from "./post-base.js";

type PreviewBase = PostBase;

/** The method `preview` of the service. */
type Preview = (request: {
  postId: number;
  content: string;
  as: number;
}) => Promise<{ html: string; uploads: string }>;

/** Nobody is trusted: a text that was not saved may come from another page that is open. */
const UNTRUSTED = { has: () => false } as const;

/**
 * Creates the method `preview` of the service.
 *
 * The text is sanitised whoever writes it, and is never longer than what a user without
 * `unfiltered_html` may save, since sanitising takes time.
 */
export function createPreview({ repository, postTypes, site, callers }: PreviewBase): Preview {
  return async (request) => {
    const { postId, content: text, as } = readCallArguments("preview", request, ["postId", "content", "as"]);
    checkUserId("preview", as);
    if (typeof text !== "string") {
      throw new PostbellError("invalid_argument", `preview: the content must be text (got ${typeof text}).`, {
        field: "content",
      });
    }
    await repository.current();
    const caller = await callers.load(as);
    // A record of a type that the site has no longer is not in the index.
    const [post] = repository.index.post(postId) === undefined ? [] : await repository.posts([postId]);
    if (post === undefined || !postTypes.get(post.type).collection.hasRevisions)
      throw new RestError(404, "rest_post_invalid_id", "Invalid post ID.");
    if (!caller.may("edit", post))
      throw refusal(caller, "rest_cannot_edit", "Sorry, you are not allowed to edit this post.");
    countSanitised(text, { caller: UNTRUSTED, sanitised: { characters: 0 } }, site.filteredCharacters);
    const content = await site.sanitise("content", text);
    const html = await site.render.content({ ...post, content, isTrusted: false });
    return { html, uploads: site.upload("") };
  };
}
