/** Builds the parts of the content service that its routes share, from the host's settings. */

import { guardedLogger, type Logger } from "../core/logger.js";
import { createStorageCircuit } from "../core/storage-circuit.js";
import { countStoreErrors } from "../core/store-metrics.js";
import { guardedTelemetry } from "../core/telemetry.js";
import { createAuthorization } from "./auth/authorization.js";
import { readRoles } from "./auth/roles.js";
import { createCallers } from "./callers.js";
import { createContentTelemetry } from "./content-telemetry.js";
import { createMediaUploads } from "./media/create-media.js";
import { createJournaledFiles } from "./media/journaled-files.js";
import { createMediaRules } from "./media/media-rules.js";
import { createStoredImages } from "./media/stored-images.js";
import { createMenuLocations } from "./menu-locations/menu-locations.js";
import type { ContentSettings } from "./options.js";
import { menuItemRules } from "./posts/menu-items/menu-item-rules.js";
import { createPostTypes } from "./posts/post-types.js";
import { createRevisionKeeper } from "./posts/revisions/keep-revisions.js";
import type { ContentChanged } from "./records/record-changes.js";
import { createChangePoller } from "./repository/change-poller.js";
import { createContentRepository } from "./repository/content-repository.js";
import { guardContentStore } from "./repository/guarded-store.js";
import { createOrphanFileJournal } from "./repository/orphan-file-journal.js";
import { createScheduledPosts } from "./repository/scheduled-posts.js";
import { createListLimits } from "./rest/list-limits.js";
import { createSettings } from "./settings/settings.js";
import { createSite, type Site } from "./site.js";
import { createSiteZone } from "./text/dates.js";
import { createUsers } from "./users/users.js";

/**
 * The parts of `limits.cacheBytes`: a quarter each for records and responses, half for rendered
 * items.
 */
const SHARES = 4;

export type ContentParts = ReturnType<typeof createContentParts>;
export type MediaParts = ReturnType<typeof createMediaParts>;

/** The site, its users and callers, and the repository of its content. */
export function createContentParts(settings: ContentSettings) {
  const { clock, limits } = settings;
  const circuit = createStorageCircuit({
    clock,
    logger: guardedLogger(settings.logger),
    service: "content",
  });
  const { logger } = circuit;
  const zone = createSiteZone(settings.site.timezone ?? "UTC");
  const users = createUsers({ users: settings.users, clock, logger });
  const roles = readRoles(settings.roles);
  const callerOf = createAuthorization({ roles });
  const callers = createCallers({ users, callerOf, authenticate: settings.authenticate, logger });

  const telemetry = guardedTelemetry(settings.telemetry);
  const report = telemetry && createContentTelemetry(telemetry, clock);
  const stored = guardContentStore(settings.storage.content({ clock, logger }), circuit);
  const store = countStoreErrors(stored, telemetry, "content");
  const cacheShare = Math.floor(limits.cacheBytes / SHARES);
  const repository = createContentRepository({
    store,
    changed: createChangeHook(settings.changed, logger),
    cacheCharacters: Math.max(cacheShare, 1),
    lookedUp: report?.countRecordLookUps,
  });
  const { write: hook, ...given } = settings.settings;
  const siteSettings = createSettings({ site: settings.site, hook, ...given, repository, clock, logger });
  const site: Site = {
    ...createSite(settings.site, zone, settings.render, limits.filteredCharacters),
    get name() {
      return siteSettings.read().title;
    },
    get description() {
      return siteSettings.read().description;
    },
  };
  return {
    clock,
    logger,
    namespace: `${settings.namespace}/v2`,
    site,
    siteSettings,
    menuLocations: createMenuLocations(settings.menuLocations, repository),
    users,
    roles,
    callerOf,
    callers,
    report,
    store,
    checkStorage: circuit.check,
    repository,
    cacheShare,
    poller: createChangePoller({ consistency: settings.consistency, repository, clock, logger }),
    scheduled: createScheduledPosts({ repository, site, clock, logger }),
    keepRevision: createRevisionKeeper({ repository, maxRevisions: limits.revisions }),
    lists: createListLimits(limits.responseBytes),
  };
}

/** The files of media, their smaller versions, and the post types, which need both. */
export function createMediaParts(settings: ContentSettings, parts: ContentParts) {
  const { clock, logger, site, store, repository } = parts;
  const { limits, images: tool } = settings;
  const { index, current } = repository;
  const files =
    settings.files &&
    createJournaledFiles({
      files: settings.files,
      journal: createOrphanFileJournal({ store, index, current }),
      clock,
      logger,
    });
  const images = files && tool ? createStoredImages({ files, tool, logger }) : undefined;
  const uploads = createMediaUploads({
    files,
    images,
    limit: limits.uploadBytes,
    pace: { clock, ms: limits.bodyMs, bytesPerSecond: limits.uploadBytesPerSecond },
    site,
    now: repository.now,
    logger,
  });
  const postTypes = createPostTypes({
    attachment: createMediaRules(uploads),
    nav_menu_item: menuItemRules,
  });
  return { files, images, postTypes };
}

/** Calls the host's hook `changed`, and logs its errors. */
const createChangeHook =
  (changed: ContentSettings["changed"], logger: Logger) =>
  (change: ContentChanged): void => {
    const logError = (error: unknown): void => logger.error({ error }, "the hook `changed` has failed");
    try {
      Promise.resolve(changed?.(change)).catch(logError);
    } catch (error) {
      logError(error);
    }
  };
