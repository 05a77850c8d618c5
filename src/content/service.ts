/**
 * `createContent`: puts the content service together, in the order in which its parts depend on
 * each other, and ties it to its life cycle.
 */

import { readCallArguments } from "../core/known-names.js";
import { guardedLogger, type Logger, toServiceLogger } from "../core/logger.js";
import { createStorageCircuit } from "../core/storage-circuit.js";
import { countStoreErrors, guardedTelemetry } from "../core/telemetry.js";
import { cacheDocument } from "../http/openapi-document.js";
import type { DirectHandler } from "../http/types.js";
import { createAddressPolicy } from "../outbound/destination-options.js";
import type { JsonObject } from "../schema/types.js";
import { type Roles, readRoles } from "./auth/roles.js";
import { checkRequest, checkUserId, createCallers } from "./callers.js";
import type { Content } from "./content.js";
import { type ContentTelemetry, createContentTelemetry } from "./content-telemetry.js";
import { createContentModel } from "./declared-types.js";
import { editorRoutes } from "./editor/editor-routes.js";
import { createLinkedPages, type LinkedPages } from "./editor/linked-pages.js";
import { embedRoutes } from "./embeds/embed-routes.js";
import { createForeignEmbeds, type ForeignEmbeds } from "./embeds/foreign-embeds.js";
import { createOwnEmbeds, type OwnEmbeds } from "./embeds/own.js";
import { createHealthStatus } from "./health-status.js";
import { createMediaUploads } from "./media/create-media.js";
import { createFileServer } from "./media/file-server.js";
import { imageRoutes } from "./media/image-routes.js";
import { createJournaledFiles, type JournaledFiles } from "./media/journaled-files.js";
import { createMediaRules } from "./media/media-rules.js";
import { createStoredImages, type StoredImages } from "./media/stored-images.js";
import { createMenuLocations, menuLocationRoutes } from "./menu-locations/menu-locations.js";
import { type ContentConfig, type ContentOptions, readContentConfig } from "./options.js";
import { withDeclaredMeta } from "./posts/declared-meta.js";
import { menuItemRules } from "./posts/menu-items/menu-item-rules.js";
import type { PostBase } from "./posts/post-base.js";
import { createPasswords } from "./posts/post-passwords.js";
import { createPostRenderer } from "./posts/post-renderer.js";
import { postRoutes } from "./posts/post-routes.js";
import { createPostTypes } from "./posts/post-types.js";
import { createPreview } from "./posts/preview-post.js";
import { autosaveRoutes } from "./posts/revisions/autosave-routes.js";
import { createRevisionKeeper } from "./posts/revisions/keep-revisions.js";
import { createRevisionRestorer } from "./posts/revisions/restore-revision.js";
import { revisionRoutes } from "./posts/revisions/revision-routes.js";
import type { ContentChanged } from "./records/record-changes.js";
import { createContentRenderer } from "./rendering/content-renderer.js";
import { createChangePoller } from "./repository/change-poller.js";
import { createContentRepository } from "./repository/content-repository.js";
import { guardContentStore } from "./repository/guarded-store.js";
import { createOrphanFileJournal } from "./repository/orphan-file-journal.js";
import { createScheduledPosts } from "./repository/scheduled-posts.js";
import { createListLimits } from "./rest/lists.js";
import { describeContentOpenApi } from "./rest/openapi.js";
import { createRestServer } from "./rest/server.js";
import type { RestRoute } from "./rest/types.js";
import { searchRoutes } from "./search/search-routes.js";
import { createSettings, type Settings, settingsRoutes } from "./settings/settings.js";
import { type ContentRenderer, createSite, type Site } from "./site.js";
import type { ContentStore } from "./store.js";
import { termRoutes } from "./terms/term-routes.js";
import { createSiteZone } from "./text/dates.js";
import { typeRoutes } from "./type-routes/type-routes.js";
import { applicationPasswordRoutes, describeAuthentication } from "./users/application-password-routes.js";
import { userRoutes } from "./users/user-routes.js";
import { createUsers } from "./users/users.js";
import { createExport } from "./wxr/export.js";
import { createImport } from "./wxr/import.js";

export type { Content, ContentPreview, ContentRequest, ContentResponse } from "./content.js";

const STARTED_WITHOUT_STORAGE = "the content could not be read; it will be when the storage is there";

/** Methods whose responses may be as old as `consistency` allows. A write sees the newest state. */
const READS: Set<string> = new Set(["GET", "HEAD", "OPTIONS"]);

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
  const config = readContentConfig(options);
  const { clock, embeds, limits } = config;
  const circuit = createStorageCircuit({ clock, logger: guardedLogger(config.logger), service: "content" });
  const { logger, check: checkStorage } = circuit;
  const telemetry = guardedTelemetry(config.telemetry);
  const report = telemetry && createContentTelemetry(telemetry, clock);
  const stored = config.storage.content({ clock, logger: toServiceLogger(logger) });
  const store = countStoreErrors(guardContentStore(stored, circuit), telemetry, "content");

  const base = createBase(config, logger, store, report);
  const { namespace, repository, site, users, callers, files, images } = base;
  const poller = createChangePoller({ consistency: config.consistency, repository, clock, logger });
  const scheduled = createScheduledPosts(base);
  const ownEmbeds = createOwnEmbeds(base);
  const foreign = embeds.enabled
    ? createForeignEmbeds({ ...embeds, clock, isOwn: ownEmbeds.isOwn })
    : undefined;
  const pages = embeds.enabled ? createLinkedPages({ ...embeds, clock }) : undefined;

  const openApi = cacheDocument(() =>
    describeContentOpenApi(server.routes, { title: site.name, baseUrl: site.url }),
  );
  const server = createRestServer({
    routes: listRoutes(base, config, { ownEmbeds, foreign, pages }),
    openApi,
    describeSite: () => describeSite(base),
    describeAuthentication: () => describeAuthentication(config.applicationPasswords),
    authenticate: callers.authenticate,
    ready: (method) => {
      const current = READS.has(method) ? poller.current() : repository.current();
      return current === undefined ? scheduled.publishDue() : current.then(() => scheduled.publishDue());
    },
    stamp: () => repository.stamp() + users.stamp(),
    cors: config.cors,
    bodyPace: { clock, ms: limits.bodyMs },
    limits: { requestBytes: limits.requestBytes, cacheBytes: shareOfCache(config) },
    lists: base.lists,
    unknownPaths: config.unknownPaths,
    logger,
    onCacheLookUp: report?.countResponseLookUp,
  });
  const measure = (handle: DirectHandler): DirectHandler =>
    report?.timed(handle, server.findRoutePath) ?? handle;
  let isWanted = false;
  let isStarted = false;
  let unobserve: (() => void) | undefined;

  return Object.freeze<Content>({
    handle: measure(server.handle),
    async handleAs(call) {
      const { request, as } = readCallArguments("handleAs", call, ["request", "as"]);
      checkUserId("handleAs", as);
      checkRequest("handleAs", request);
      return measure((passed) => server.handleAs(passed, () => callers.load(as)))(request);
    },
    namespace,
    uploads: config.files
      ? createFileServer({ files: config.files, logger })
      : { handle: async () => undefined },
    async request(call) {
      const { as, baseUrl = site.url, ...request } = call;
      if (as !== null) checkUserId("request", as);
      const caller = as === null ? callers.anonymous : await callers.load(as);
      return server.dispatch({ ...request, baseUrl, caller });
    },
    restoreRevision: createRevisionRestorer(base),
    preview: createPreview(base),
    import: createImport(base, { files, images, uploadBytes: limits.uploadBytes }),
    export: createExport(base),
    openApi: ({ baseUrl = site.url } = {}) => structuredClone(openApi(baseUrl)),
    async start() {
      isWanted = true;
      try {
        await repository.current();
      } catch (error) {
        if (config.awaitStorage && isWanted) throw error;
        if (isWanted) logger.error({ error }, STARTED_WITHOUT_STORAGE);
      }
      // `stop` may have been called while this call waited.
      if (!isWanted) return;
      poller.start();
      files?.start();
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
      files?.stop();
      scheduled.stop();
      await foreign?.close();
      await pages?.close();
    },
    [Symbol.asyncDispose]() {
      return this.stop();
    },
    status: createHealthStatus({ repository, poller, clock, checkStorage, isStarted: () => isStarted }),
  });
}

/** A quarter of `limits.cacheBytes` for records and for responses each; rendered items get half. */
const shareOfCache = ({ limits }: ContentConfig): number => Math.floor(limits.cacheBytes / 4);

/** The base of the rooms, and what only one or two of them need. */
interface AssembledBase extends PostBase {
  /** WordPress's settings. The options of the host are the config. */
  settings: Settings;
  roles: Roles;
  files: JournaledFiles | undefined;
  images: StoredImages | undefined;
}

/** The repository and the site first, then files and media, then the types of posts. */
function createBase(
  config: ContentConfig,
  logger: Logger,
  store: ContentStore,
  report: ContentTelemetry | undefined,
): AssembledBase {
  const { clock, limits } = config;
  const namespace = `${config.namespace}/v2`;
  const cacheShare = shareOfCache(config);
  const model = withDeclaredMeta(createContentModel(config), config.meta);
  const repository = createContentRepository({
    store,
    model,
    changed: createChangeHook(config.changed, logger),
    cacheCharacters: Math.max(cacheShare, 1),
    lookedUp: report?.countRecordLookUps,
  });
  const settings = createSettings({ repository, clock, logger, site: config.site, options: config.settings });
  const users = createUsers({ users: config.users, clock, logger });
  const contents = createContentRenderer({ repository, settings, users, clock, logger, config });
  const site = createConfiguredSite(config, settings.read, contents);
  const menuLocations = createMenuLocations(config.menuLocations, repository);

  const roles = readRoles(config.roles);
  const callers = createCallers({ users, roles, model, authenticate: config.authenticate, logger });

  const journal = createOrphanFileJournal({ store, index: repository.index, current: repository.current });
  const files = config.files && createJournaledFiles({ files: config.files, journal, clock, logger });
  const images =
    files && config.images ? createStoredImages({ files, tool: config.images, logger }) : undefined;
  const uploads = createMediaUploads({ clock, logger, site, repository, files, images, limits });

  const rules = { attachment: createMediaRules(uploads), nav_menu_item: menuItemRules };
  const postTypes = createPostTypes(rules, model);
  const renderer = createPostRenderer({ repository, postTypes, site, users, callers, namespace, cacheShare });
  return {
    clock,
    logger,
    namespace,
    model,
    repository,
    site,
    settings,
    menuLocations,
    users,
    roles,
    callers,
    files,
    images,
    postTypes,
    renderer,
    lists: createListLimits(limits.responseBytes),
    passwords: createPasswords({ perMinute: limits.passwordsPerMinute, clock }),
    keepRevision: createRevisionKeeper({ repository, maxRevisions: limits.revisions }),
  };
}

/** Administrators may change the name and the description of the site. */
const createConfiguredSite = (
  { site, render, limits }: ContentConfig,
  readSettings: Settings["read"],
  contents: ContentRenderer,
): Site => ({
  ...createSite(site, createSiteZone(site.timezone ?? "UTC"), render, {
    filteredCharacters: limits.filteredCharacters,
    frontPage() {
      const { show_on_front, page_on_front } = readSettings();
      return show_on_front === "page" ? page_on_front : 0;
    },
    hasSmilies: () => readSettings().use_smilies,
    newPostsAre() {
      const { default_comment_status, default_ping_status } = readSettings();
      return { commentStatus: default_comment_status, pingStatus: default_ping_status };
    },
    contents,
  }),
  get name() {
    return readSettings().title;
  },
  get description() {
    return readSettings().description;
  },
});

/** Every route except those that the REST server adds: index, batch and OpenAPI. */
const listRoutes = (
  base: AssembledBase,
  { editor, embeds: { destinations }, applicationPasswords: passwords }: ContentConfig,
  {
    ownEmbeds,
    foreign,
    pages,
  }: { ownEmbeds: OwnEmbeds; foreign?: ForeignEmbeds | undefined; pages?: LinkedPages | undefined },
): RestRoute[] => [
  ...base.postTypes.all.flatMap((type) =>
    [postRoutes, revisionRoutes, autosaveRoutes].flatMap((listRoutesOf) => listRoutesOf(type, base)),
  ),
  ...imageRoutes(base, base.images),
  ...embedRoutes(ownEmbeds, foreign),
  ...termRoutes(base),
  ...userRoutes(base),
  ...(passwords === undefined ? [] : applicationPasswordRoutes({ ...base, passwords })),
  ...typeRoutes(base),
  ...editorRoutes(base, editor, pages, createAddressPolicy(destinations)),
  ...menuLocationRoutes(base),
  ...searchRoutes(base),
  ...settingsRoutes(base),
];

/** Calls the host's hook `changed`, and logs its errors. */
const createChangeHook =
  (changed: ContentConfig["changed"], logger: Logger) =>
  (change: ContentChanged): void => {
    const call = async (): Promise<unknown> => changed?.(change);
    call().catch((error: unknown) => logger.error({ error }, "the hook `changed` has failed"));
  };

/** Returns the members of the index that describe the site. */
function describeSite({ site, settings, clock }: AssembledBase): JsonObject {
  const { name, description, url, home, zone } = site;
  const { timezone, page_for_posts, page_on_front, show_on_front, site_logo, site_icon } = settings.read();
  return {
    name,
    description,
    url,
    home,
    gmt_offset: String(zone.offsetHours(clock.now())),
    timezone_string: timezone,
    page_for_posts,
    page_on_front,
    show_on_front,
    site_logo: site_logo ?? 0,
    site_icon,
    site_icon_url: "",
  };
}
