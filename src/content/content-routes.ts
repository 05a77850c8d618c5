/** Puts the routes of the content service together. */

import { createAddressPolicy } from "../outbound/destination-options.js";
import type { ContentParts, MediaParts } from "./content-parts.js";
import { editorRoutes } from "./editor/editor-routes.js";
import type { LinkedPages } from "./editor/linked-pages.js";
import { embedRoutes } from "./embeds/embed-routes.js";
import type { ForeignEmbeds } from "./embeds/foreign-embeds.js";
import type { OwnEmbeds } from "./embeds/own.js";
import { imageRoutes } from "./media/image-routes.js";
import { menuLocationRoutes } from "./menu-locations/menu-location-routes.js";
import type { ContentSettings } from "./options.js";
import { createPasswords } from "./posts/post-passwords.js";
import { createPostRenderer } from "./posts/post-renderer.js";
import { postRoutes } from "./posts/post-routes.js";
import { autosaveRoutes } from "./posts/revisions/autosave-routes.js";
import { revisionRoutes } from "./posts/revisions/revision-routes.js";
import type { RestRoute } from "./rest/types.js";
import { searchRoutes } from "./search/search-routes.js";
import { settingsRoutes } from "./settings/settings-routes.js";
import { termRoutes } from "./terms/term-routes.js";
import { typeRoutes } from "./type-routes/type-routes.js";
import { userRoutes } from "./users/user-routes.js";

export interface Embeds {
  readonly own: OwnEmbeds;
  readonly foreign: ForeignEmbeds | undefined;
  /** The pages that editors link to. */
  readonly pages: LinkedPages | undefined;
}

/** Every route except those that the REST server adds: index, batch and OpenAPI. */
export function createContentRoutes(
  { limits, editor, embeds: { destinations } }: ContentSettings,
  parts: ContentParts,
  { images, postTypes }: MediaParts,
  embeds: Embeds,
): readonly RestRoute[] {
  const { clock, repository, site, namespace, users, roles, callerOf, keepRevision, lists } = parts;
  const { menuLocations } = parts;
  const passwords = createPasswords({ perMinute: limits.passwordsPerMinute, clock });
  const cacheBytes = Math.max(parts.cacheShare * 2, 1);
  const renderer = createPostRenderer({ repository, postTypes, site, namespace, cacheBytes });
  const shared = { repository, site, renderer, users, namespace, passwords, keepRevision, lists };
  return [
    ...Object.values(postTypes).flatMap((type) => [
      ...postRoutes(type, shared),
      ...revisionRoutes(type, shared),
      ...autosaveRoutes(type, shared),
    ]),
    ...imageRoutes(postTypes.attachment, { repository, site, renderer, images, namespace }),
    ...embedRoutes(embeds),
    ...termRoutes({
      repository,
      site,
      menuLocations,
      namespace,
      defaultCategory: repository.defaultCategory,
    }),
    ...userRoutes({ users, repository, callerOf, roles, site, namespace }),
    ...typeRoutes(namespace),
    ...editorRoutes({
      ...shared,
      ...{ editor, clock, logger: parts.logger, postTypes, pages: embeds.pages },
      policy: createAddressPolicy(destinations),
      menuAt: menuLocations.menuAt,
      anonymous: parts.callers.anonymous,
    }),
    ...menuLocationRoutes({ menuLocations, namespace }),
    ...searchRoutes({ repository, site, lists, namespace }),
    ...settingsRoutes({ settings: parts.siteSettings, namespace }),
  ];
}
