/** The members that the rooms of the content service share. `service.ts` puts them together. */

import type { Clock } from "../core/clock.js";
import type { Logger } from "../core/logger.js";
import type { Callers } from "./callers.js";
import type { MenuLocations } from "./menu-locations/menu-locations.js";
import type { ContentModel } from "./records/content-model.js";
import type { ContentRepository } from "./repository/content-repository.js";
import type { ListLimits } from "./rest/lists.js";
import type { Site } from "./site.js";
import type { Users } from "./users/users.js";

export interface ContentBase {
  clock: Clock;
  /** Guarded: it never throws. */
  logger: Logger;
  /** The first two segments of the content routes: `core/v2`. */
  namespace: string;
  model: ContentModel;
  repository: ContentRepository;
  site: Site;
  menuLocations: MenuLocations;
  users: Users;
  callers: Callers;
  lists: ListLimits;
}
