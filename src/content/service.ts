/**
 * `createContent`: puts the parts of the content service together and ties them to its life cycle.
 */

import { isDate } from "node:util/types";
import { PostbellError } from "../core/errors.js";
import { cacheDocument } from "../http/openapi-document.js";
import type { DirectHandler } from "../http/types.js";
import { createOutboundClient } from "../outbound/client.js";
import { createGuardedGet } from "../outbound/guarded-get.js";
import type { JsonObject } from "../schema/types.js";
import type { Content } from "./content.js";
import { type ContentParts, createContentParts, createMediaParts, type MediaParts } from "./content-parts.js";
import { createContentRoutes } from "./content-routes.js";
import { createLinkedPages } from "./editor/linked-pages.js";
import { createForeignEmbeds } from "./embeds/foreign-embeds.js";
import { createOwnEmbeds } from "./embeds/own.js";
import { createHealthStatus } from "./health-status.js";
import { createFileServer } from "./media/file-server.js";
import { type ContentOptions, type ContentSettings, readContentSettings } from "./options.js";
import { createRestoreRevision } from "./posts/revisions/restore-revision.js";
import { describeContentOpenApi } from "./rest/openapi.js";
import { createRestServer, type RestServer } from "./rest/server.js";
import type { RestRoute } from "./rest/types.js";
import { createExport } from "./wxr/export.js";
import { createImport } from "./wxr/import.js";
import { createFetchFile } from "./wxr/import-files.js";

export type { Content, ContentAnswer, ContentRequest } from "./content.js";

/** An import keeps connections to so many hosts: the files of a site lie on one or a few. */
const FETCHED_ORIGINS = 16;

const STARTED_WITHOUT_STORAGE = "the content could not be read; it will be when the storage is there";

/** Methods whose responses may be as old as `consistency` allows. A write sees the newest state. */
const READS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 * Creates the content service: the REST interface of a website, to mount with an adapter. It does
 * nothing until it is called.
 *
 * @example
 * ```ts
 * const content = createContent({
 *   storage: memoryStorage(),
 *   site: { name: "Clinic", url: "https://www.example.org" },
 *   authenticate: (request) => findSession(request.headers["cookie"]),
 *   users: [{ id: 1, slug: "ada", name: "Ada", roles: ["editor"] }],
 * });
 * app.use("/api", expressAdapter(content));
 * ```
 *
 * @throws PostbellError `invalid_option`, with the path of the option as `field`
 */
export function createContent(options: ContentOptions): Content {
  const settings = readContentSettings(options);
  const parts = createContentParts(settings);
  const { clock, logger, namespace, site, repository, callers, report, poller, scheduled } = parts;
  const media = createMediaParts(settings, parts);
  const own = createOwnEmbeds({
    repository,
    site,
    users: parts.users,
    anonymous: callers.anonymous,
  });
  const foreign = settings.embeds.enabled
    ? createForeignEmbeds({ ...settings.embeds, clock, isOwn: own.isOwn })
    : undefined;
  const pages = settings.embeds.enabled ? createLinkedPages({ ...settings.embeds, clock }) : undefined;
  const openApi = cacheDocument(() =>
    describeContentOpenApi(server.routes, { title: site.name, baseUrl: site.url }),
  );
  const server = createServer(
    settings,
    parts,
    createContentRoutes(settings, parts, media, { own, foreign, pages }),
    openApi,
  );
  const checkHealth = createHealthStatus({
    ...{ repository, poller, clock },
    checkStorage: parts.checkStorage,
    isStarted: () => isStarted,
  });
  const measure = (handle: DirectHandler): DirectHandler =>
    report?.timed(handle, server.findRoutePath) ?? handle;
  let isWanted = false;
  let isStarted = false;
  let unobserve: (() => void) | undefined;

  return Object.freeze<Content>({
    handle: measure(server.handle),
    handleAs: async (request, as) =>
      measure((passed) => server.handleAs(passed, () => callers.load(as)))(request),
    namespace,
    uploads: settings.files
      ? createFileServer({ files: settings.files, logger })
      : { handle: async () => undefined },
    async request({ as, baseUrl = site.url, ...request }) {
      const caller = as === null ? callers.anonymous : await callers.load(as);
      return server.dispatch({ ...request, baseUrl, caller });
    },
    restoreRevision: createRevisionRestorer(parts, media),
    import: createContentImport(settings, parts, media),
    export: createExport({ repository, site, users: parts.users }),
    openApi: ({ baseUrl = site.url } = {}) => structuredClone(openApi(baseUrl)),
    async start() {
      isWanted = true;
      try {
        await repository.current();
      } catch (error) {
        if (settings.awaitStorage && isWanted) throw error;
        if (isWanted) logger.error({ error }, STARTED_WITHOUT_STORAGE);
      }
      // `stop` may have been called while this call waited.
      if (!isWanted) return;
      poller.start();
      media.files?.start();
      scheduled.start();
      isStarted = true;
      unobserve ??= report?.observe(repository);
    },
    async stop() {
      isWanted = false;
      isStarted = false;
      unobserve?.();
      unobserve = undefined;
      poller.stop();
      media.files?.stop();
      scheduled.stop();
      await foreign?.close();
      await pages?.close();
    },
    condition: checkHealth,
  });
}

function createServer(
  { cors, limits, unknownPaths }: ContentSettings,
  { clock, logger, users, callers, repository, poller, scheduled, lists, ...parts }: ContentParts,
  routes: readonly RestRoute[],
  openApi: (baseUrl: string) => JsonObject,
): RestServer {
  return createRestServer({
    routes,
    openApi,
    describeSite: () => describeSite(parts, clock.now()),
    authenticate: callers.authenticate,
    ready: (method) => {
      const current = READS.has(method) ? poller.current() : repository.current();
      return current === undefined ? scheduled.publishDue() : current.then(() => scheduled.publishDue());
    },
    stamp: () => repository.stamp() + users.stamp(),
    cors,
    bodyPace: { clock, ms: limits.bodyMs },
    limits: { bodyBytes: limits.bodyBytes, cacheBytes: parts.cacheShare },
    lists,
    unknownPaths,
    logger,
    onCacheLookUp: parts.report?.countResponseLookUp,
  });
}

function createRevisionRestorer(
  { repository, site, callers, keepRevision }: ContentParts,
  { postTypes }: MediaParts,
) {
  const restore = createRestoreRevision({ repository, postTypes, site, keepRevision });
  const restoreRevision: Content["restoreRevision"] = async (
    postId,
    revisionId,
    { as, ifUnmodifiedSince },
  ) => {
    const since = isDate(ifUnmodifiedSince) ? ifUnmodifiedSince.getTime() : Number.NaN;
    if (ifUnmodifiedSince !== undefined && Number.isNaN(since)) {
      throw new PostbellError(
        "invalid_argument",
        "restoreRevision: ifUnmodifiedSince must be a valid Date.",
        { field: "ifUnmodifiedSince" },
      );
    }
    await repository.current();
    await restore(postId, revisionId, await callers.load(as), since);
  };
  return restoreRevision;
}

function createContentImport(
  { limits }: ContentSettings,
  { clock, site, users, callers, repository }: ContentParts,
  { files, images }: MediaParts,
): Content["import"] {
  const { uploadBytes } = limits;
  return createImport({
    ...{ repository, site, users, asUser: callers.load, files, images, uploadBytes },
    openFetch: () => {
      const client = createOutboundClient({ clock, maxOrigins: FETCHED_ORIGINS });
      return {
        source: createFetchFile(createGuardedGet({ client, clock }), uploadBytes),
        close: () => client.close(),
      };
    },
  });
}

/** Returns the members of the index that describe the site. */
function describeSite(
  { site, siteSettings }: Pick<ContentParts, "site" | "siteSettings">,
  now: number,
): JsonObject {
  const { name, description, url, home, zone } = site;
  const { timezone, page_for_posts, page_on_front, show_on_front, site_logo, site_icon } =
    siteSettings.read();
  return {
    name,
    description,
    url,
    home,
    gmt_offset: String(zone.offsetHours(now)),
    timezone_string: timezone,
    page_for_posts,
    page_on_front,
    show_on_front,
    site_logo: site_logo ?? 0,
    site_icon,
    site_icon_url: "",
  };
}
