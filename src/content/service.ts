/** `createContent`: puts the parts of the content service together. */

import { isDate } from "node:util/types";
import { PostbellError } from "../core/errors.js";
import { guardedLogger } from "../core/logger.js";
import { isPromiseLike } from "../core/promise-like.js";
import { countStoreErrors } from "../core/store-metrics.js";
import { guardedTelemetry } from "../core/telemetry.js";
import type { HealthStatus } from "../health/health-status.js";
import { cacheDocument } from "../http/openapi-document.js";
import type { DirectHandler, HttpRequest, HttpResponse, ReadableBody, Service } from "../http/types.js";
import { createOutboundClient } from "../outbound/client.js";
import { createGuardedGet } from "../outbound/guarded-get.js";
import type { Json, JsonObject } from "../schema/types.js";
import { createAuthorization } from "./auth/authorization.js";
import type { Caller } from "./auth/caller.js";
import { readRoles } from "./auth/roles.js";
import { createContentTelemetry } from "./content-telemetry.js";
import { embedRoutes } from "./embeds/embed-routes.js";
import { createForeignEmbeds } from "./embeds/foreign-embeds.js";
import { createOwnEmbeds } from "./embeds/own.js";
import { createHealthStatus } from "./health-status.js";
import { createMediaUploads } from "./media/create-media.js";
import { createFileServer } from "./media/file-server.js";
import { imageRoutes } from "./media/image-routes.js";
import { createJournaledFiles } from "./media/journaled-files.js";
import { createMediaRules } from "./media/media-rules.js";
import { createStoredImages } from "./media/stored-images.js";
import { type ContentOptions, readContentSettings } from "./options.js";
import { menuItemRules } from "./posts/menu-items/menu-item-rules.js";
import { createPasswords } from "./posts/post-passwords.js";
import { createPostRenderer } from "./posts/post-renderer.js";
import { postRoutes } from "./posts/post-routes.js";
import { createPostTypes } from "./posts/post-types.js";
import { autosaveRoutes } from "./posts/revisions/autosave-routes.js";
import { createRevisionKeeper } from "./posts/revisions/keep-revisions.js";
import { createRestoreRevision } from "./posts/revisions/restore-revision.js";
import { revisionRoutes } from "./posts/revisions/revision-routes.js";
import type { ContentChanged } from "./records/record-changes.js";
import type { User } from "./records/records.js";
import { withContentStoreTimeout } from "./repository/bounded-store.js";
import { createChangePoller } from "./repository/change-poller.js";
import { createContentRepository } from "./repository/content-repository.js";
import { createOrphanFileJournal } from "./repository/orphan-file-journal.js";
import { createScheduledPosts } from "./repository/scheduled-posts.js";
import { RestError } from "./rest/error.js";
import { createListLimits } from "./rest/list-limits.js";
import { describeContentOpenApi } from "./rest/openapi.js";
import { createRestServer } from "./rest/server.js";
import { createSite } from "./site.js";
import { termRoutes } from "./terms/term-routes.js";
import { createSiteZone } from "./text/dates.js";
import { typeRoutes } from "./type-routes/type-routes.js";
import { userRoutes } from "./users/user-routes.js";
import { createUsers } from "./users/users.js";
import { createExport, type ExportOptions } from "./wxr/export.js";
import { createFetchFile } from "./wxr/fetch-file.js";
import { createImport } from "./wxr/import.js";
import type { ImportOptions, ImportSummary } from "./wxr/options.js";

/** A request to {@link Content.request}, made in this process. */
export interface ContentRequest {
  readonly method: string;
  /** Below the mount point: `/core/v2/posts`. */
  readonly path: string;
  readonly query?: { readonly [name: string]: Json } | undefined;
  readonly headers?: { readonly [name: string]: string } | undefined;
  readonly body?: JsonObject | undefined;
  /** Id of the user who asks; `null`: anonymous. */
  readonly as: number | null;
  /** What links in the answer begin with. Default: the address of the website. */
  readonly baseUrl?: string | undefined;
}

/** What the same request would be answered over HTTP, with its body parsed. */
export interface ContentAnswer {
  readonly status: number;
  readonly headers: { readonly [name: string]: string };
  readonly body: Json;
}

/** The content service that {@link createContent} makes. */
export interface Content {
  /**
   * The REST interface, for an adapter to mount. Returns a cached response without a promise, so use `await` rather than `then`. Headers and body are
   * shared with other requests: do not change them. Never throws or rejects.
   */
  handle(request: HttpRequest): HttpResponse | undefined | Promise<HttpResponse | undefined>;
  /**
   * The same for a part of the host that has found out by itself who asks, such as a page behind its own sign-in: `authenticate` is not called, nothing that
   * the request says of its sender counts. `as`: id of the user, with his rights. Bodies are streamed, so that it takes uploads. Never rejects; 401 where nobody has the id.
   */
  handleAs(request: HttpRequest, as: number): Promise<HttpResponse | undefined>;
  /** What the content routes begin with: `core/v2`. */
  readonly namespace: string;
  /** Serves the uploaded files, below `site.uploads`, for an adapter to mount; without `files` it answers nothing. */
  readonly uploads: Service;
  /** The same in this process, without HTTP: the same checks, the same answers. Errors: RestError 401 where nobody has the id `as`. */
  request(request: ContentRequest): Promise<ContentAnswer>;
  /**
   * Makes a post what it was at a revision; what it is now is kept as a revision too. `as`: id of the user on whose behalf, with his rights.
   * `ifUnmodifiedSince`: the `modified_gmt` that he has seen, so that nothing newer is replaced unseen.
   *
   * Errors: RestError 404 where there is no such post or revision, 401 or 403 where he may not edit the post, 412 where it was changed since;
   * `invalid_argument`.
   */
  restoreRevision(
    postId: number,
    revisionId: number,
    options: { readonly as: number; readonly ifUnmodifiedSince?: Date | undefined },
  ): Promise<void>;
  /**
   * Brings the content of a WXR file, WordPress's form for it, into the site. Streamed and committed in batches; doing it again changes nothing that is
   * the same in the file, and ends what an import that failed has begun. Posts get new ids, and what points at them follows.
   *
   * Errors: `invalid_import` with the line; `invalid_argument`; RestError 401 where nobody has the id `as`; what `signal` was aborted with; those of
   * the storage. What was committed before stays.
   */
  import(source: ReadableBody, options: ImportOptions): Promise<ImportSummary>;
  /**
   * The site as a WXR 1.2 file, in pieces: posts of every type and status, terms, authors. No revisions; media by the address of their files. What is
   * written meanwhile may or may not be in it. Passwords of posts and drafts are: keep it as safe as the site.
   */
  export(options?: ExportOptions): AsyncIterable<string>;
  /** The OpenAPI 3.1 document of every route: what `GET /openapi.json` answers. `baseUrl`: of the mount point, default the address of the website. */
  openApi(options?: { readonly baseUrl?: string | undefined }): JsonObject;
  /** Loads the content, and publishes scheduled posts at their time rather than with the next request. Calling it again changes nothing. */
  start(): Promise<void>;
  /** Ends background work. Calling it again changes nothing. */
  stop(): Promise<void>;
  /** Whether the storage can be asked and changes are followed, for `createHealth`. Never rejects. */
  condition(): Promise<HealthStatus>;
}

/** Hosts that an import keeps connections to: the files of a site lie on one or a few. */
const FETCHED_ORIGINS = 16;

/** Methods whose answers may be as old as `consistency` lets them; what is written is judged by the newest state. */
const READS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** A mask of who asks beyond which nothing is told: an unknown id and a broken credential look the same. */
const unauthorized = (): RestError =>
  new RestError(401, "rest_not_logged_in", "The credentials of the request are not valid.");

/**
 * The content service: the REST interface of a website, to mount with an adapter. Does nothing until it is called.
 *
 * Errors: `invalid_option`, with the path of the option as `field`.
 */
export function createContent(options: ContentOptions): Content {
  const settings = readContentSettings(options);
  const { clock, limits, render, authenticate } = settings;
  const logger = guardedLogger(settings.logger);
  const namespace = `${settings.namespace}/v2`;
  const zone = createSiteZone(settings.site.timezone ?? "UTC");
  const site = createSite(settings.site, zone, render, limits.filteredCharacters);
  const users = createUsers({ users: settings.users, clock, logger });
  const roles = readRoles(settings.roles);
  const callerOf = createAuthorization({ roles });
  const share = Math.floor(limits.cacheBytes / 4);
  const changed = (change: ContentChanged): void => {
    const failed = (error: unknown): void => logger.error({ error }, "the hook `changed` has failed");
    try {
      Promise.resolve(settings.changed?.(change)).catch(failed);
    } catch (error) {
      failed(error);
    }
  };

  const telemetry = guardedTelemetry(settings.telemetry);
  const report = telemetry && createContentTelemetry(telemetry, clock);
  const stored = withContentStoreTimeout(settings.storage.content({ clock, logger }), clock);
  const store = countStoreErrors(stored, telemetry, "content");
  const library = createContentRepository({
    store,
    changed,
    cacheCharacters: Math.max(share, 1),
    lookedUp: report?.lookedUpRecords,
  });
  const following = createChangePoller({
    consistency: settings.consistency,
    repository: library,
    clock,
    logger,
  });
  const passwords = createPasswords({ perMinute: limits.passwordsPerMinute, clock });
  const scheduled = createScheduledPosts({ repository: library, site, clock, logger });

  const { index, current } = library;
  const files =
    settings.files &&
    createJournaledFiles({
      files: settings.files,
      journal: createOrphanFileJournal({ store, index, current }),
      clock,
      logger,
    });
  const { images: tool } = settings;
  const images = files && tool ? createStoredImages({ files, tool, logger }) : undefined;
  const uploads = createMediaUploads({
    files,
    images,
    limit: limits.uploadBytes,
    pace: { clock, ms: limits.bodyMs, bytesPerSecond: limits.uploadBytesPerSecond },
    site,
    now: library.now,
    logger,
  });

  const postTypes = createPostTypes({
    attachment: createMediaRules(uploads),
    nav_menu_item: menuItemRules,
  });
  const renderer = createPostRenderer({
    repository: library,
    postTypes,
    site,
    namespace,
    cacheBytes: Math.max(share * 2, 1),
  });

  const anonymous = callerOf(null);
  const ownEmbeds = createOwnEmbeds({ library, site, users, anonymous });
  const foreignEmbeds = settings.embeds.enabled
    ? createForeignEmbeds({ ...settings.embeds, clock, isOwn: ownEmbeds.isOwn })
    : undefined;

  const keepRevision = createRevisionKeeper({ repository: library, maxRevisions: limits.revisions });
  const lists = createListLimits(limits.responseBytes);
  const postOptions = {
    repository: library,
    site,
    renderer,
    users,
    namespace,
    passwords,
    keepRevision,
    lists,
  };
  const routes = [
    ...Object.values(postTypes).flatMap((type) => [
      ...postRoutes(type, postOptions),
      ...revisionRoutes(type, postOptions),
      ...autosaveRoutes(type, postOptions),
    ]),
    ...imageRoutes(postTypes.attachment, { repository: library, site, renderer, images, namespace }),
    ...embedRoutes({ own: ownEmbeds, foreign: foreignEmbeds }),
    ...termRoutes({ repository: library, site, namespace, defaultCategory: library.defaultCategory }),
    ...userRoutes({ users, repository: library, callerOf, roles, site, namespace }),
    ...typeRoutes(namespace),
  ];

  const asUser = async (id: number): Promise<Caller> => {
    const user: User | null = await users.get(id);
    if (user === null) throw unauthorized();
    return callerOf(user);
  };

  const callerFor = (known: { readonly id: number } | null | undefined): Caller | Promise<Caller> =>
    known === null || known === undefined ? anonymous : asUser(known.id);
  const restore = createRestoreRevision({ repository: library, postTypes, site, keepRevision });

  const openApi = cacheDocument(() =>
    describeContentOpenApi(server.routes, { title: site.name, baseUrl: site.url }),
  );

  const server = createRestServer({
    routes,
    openApi,
    describeSite: () => describeSite(site, clock.now()),
    authenticate: (request) => {
      const known = authenticate(request);
      return isPromiseLike(known) ? Promise.resolve(known).then(callerFor) : callerFor(known);
    },
    ready: (method) => {
      const current = READS.has(method) ? following.current() : library.current();
      return current === undefined ? scheduled.publishDue() : current.then(() => scheduled.publishDue());
    },
    stamp: () => library.stamp() + users.stamp(),
    origins: settings.cors.origins,
    bodyPace: { clock, ms: limits.bodyMs },
    limits: { bodyBytes: limits.bodyBytes, cacheBytes: share },
    lists,
    unknownPaths: settings.unknownPaths,
    logger,
    onCacheLookUp: report?.lookedUpAnswer,
  });

  const condition = createHealthStatus({ library, following, clock });
  const timed = (handle: DirectHandler): DirectHandler =>
    report?.timed(handle, server.findRoutePath) ?? handle;
  let isStarted = false;
  let unobserve: (() => void) | undefined;

  return Object.freeze<Content>({
    handle: timed(server.handle),
    handleAs: async (request, as) => timed((asked) => server.handleAs(asked, () => asUser(as)))(request),
    namespace,
    uploads: settings.files
      ? createFileServer({ files: settings.files, logger })
      : { handle: async () => undefined },
    async request({ as, baseUrl = site.url, ...request }) {
      return server.dispatch({ ...request, baseUrl, caller: as === null ? anonymous : await asUser(as) });
    },
    async restoreRevision(postId, revisionId, { as, ifUnmodifiedSince }) {
      const known = isDate(ifUnmodifiedSince) ? ifUnmodifiedSince.getTime() : Number.NaN;
      if (ifUnmodifiedSince !== undefined && Number.isNaN(known)) {
        throw new PostbellError(
          "invalid_argument",
          "restoreRevision: ifUnmodifiedSince must be a valid Date.",
          {
            field: "ifUnmodifiedSince",
          },
        );
      }
      await library.current();
      await restore(postId, revisionId, await asUser(as), known);
    },
    import: createImport({
      ...{ repository: library, site, users, asUser, files, images, uploadBytes: limits.uploadBytes },
      openFetch: () => {
        const client = createOutboundClient({ clock, maxOrigins: FETCHED_ORIGINS });
        return {
          source: createFetchFile(createGuardedGet({ client, clock }), limits.uploadBytes),
          close: () => client.close(),
        };
      },
    }),
    export: createExport({ repository: library, site, users }),
    openApi: ({ baseUrl = site.url } = {}) => structuredClone(openApi(baseUrl)),
    async start() {
      await library.current();
      following.start();
      files?.start();
      scheduled.start();
      isStarted = true;
      unobserve ??= report?.observe(library);
    },
    async stop() {
      isStarted = false;
      unobserve?.();
      unobserve = undefined;
      following.stop();
      files?.stop();
      scheduled.stop();
      await foreignEmbeds?.close();
    },
    condition: async () => (isStarted ? condition() : { isStarted, problems: [] }),
  });
}

/** The index's part that tells of the site. */
function describeSite(site: ReturnType<typeof createSite>, now: number): JsonObject {
  const { name, description, url, home, timezone, zone } = site;
  return {
    name,
    description,
    url,
    home,
    gmt_offset: String(zone.offsetHours(now)),
    timezone_string: timezone.includes("/") ? timezone : "",
    page_for_posts: 0,
    page_on_front: 0,
    show_on_front: "posts",
    site_logo: 0,
    site_icon: 0,
    site_icon_url: "",
  };
}
