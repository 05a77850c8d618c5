/**
 * A page for operators and subscribers, as a service that an adapter mounts.
 *
 * @module postbell/portal
 */

import { type Clock, withTimeout } from "../core/clock.js";
import { guardedLogger, type Logger } from "../core/logger.js";
import { parseUrl } from "../core/parse-url.js";
import { HttpError, rateLimited, serviceUnavailable } from "../http/errors.js";
import { createRateLimit } from "../http/rate-limit.js";
import { createRouter, type Route, withoutBody } from "../http/router.js";
import type { HttpRequest, HttpResponse, Service } from "../http/types.js";
import type { Operator, Subscriber } from "../webhooks/access.js";
import { checkName, readSubscriber } from "../webhooks/call-arguments.js";
import { accountRoutes, payerOf } from "./accounts-api.js";
import {
  API_HEADERS,
  type ApiCall,
  type ApiRoute,
  jsonError,
  jsonResponse,
  notFoundHere,
  pickHeaders,
  toPortalError,
} from "./api.js";
import { contentRoutes, isPreviewPath } from "./content-api.js";
import {
  type Authorize,
  type PortalOptions,
  type PortalSettings,
  readPortalOptions,
  type Visitor,
} from "./options.js";
import { createPage } from "./page.js";
import type { SessionJson } from "./shapes.js";

export type {
  Authorize,
  EditableRecord,
  EditUrl,
  PortalOptions,
  PortalWebhooks,
  Visitor,
} from "./options.js";
export { type PortalTexts, portalTexts } from "./texts/languages.js";

/** The paths of the webhook service as the page requests them. */
const WEBHOOKS_PREFIX = "/api/v1/";

type UnroutedCall = Omit<ApiCall, "parameter">;

/** The route that tells the page who its visitor is, and what it may show. */
const sessionRoute = ({ webhooks, content, editUrl, title, theme, clock }: PortalSettings): ApiRoute => ({
  method: "GET",
  path: "/api/session",
  async handle({ visitor: { name, userId, operator, canReadRecords }, actor }) {
    const session: SessionJson = {
      title,
      logo: theme.logo,
      name,
      parts: {
        webhooks: webhooks !== undefined && actor !== undefined,
        content: content !== undefined && userId !== undefined,
      },
      canReadRecords: canReadRecords === true,
      ...(webhooks?.audit?.isKept === true && { hasAuditLog: true }),
      ...(operator === true && webhooks?.accounts !== undefined && { isOperator: true }),
      ...(actor !== undefined && "operator" in actor && { account: actor.account }),
      ...(editUrl !== undefined && { hasEditor: true }),
      schedule: webhooks?.schedule() ?? [],
      now: new Date(clock.now()).toISOString(),
    };
    return jsonResponse(200, session);
  },
});

/**
 * Creates the portal, a page with a small API that an adapter mounts. It shows webhooks
 * with their health and deliveries, repairs them, and edits content.
 *
 * `authorize` is called for the page and for each of its requests. A webhook of another account is
 * reported as not found. The page loads nothing from other origins except the logo, and nothing
 * runs in the background.
 *
 * @throws `invalid_option`, with the path of the option as `field`.
 *
 * @example
 * const portal = createPortal({
 *   webhooks,
 *   authorize: (request) => expressRequest(request).session.visitor ?? null,
 *   title: "Clinic webhooks",
 *   theme: { accent: "#7a1f5c", accentDark: "#f0a6d8" },
 * });
 * app.use("/portal", expressAdapter(portal));
 */
export function createPortal(options: PortalOptions): Service {
  const settings = readPortalOptions(options);
  const { webhooks, content, authorize, clock } = settings;
  const logger = guardedLogger(settings.logger);

  /** Identifies the visitor. A change must come from the page itself. */
  const openCall = async (request: HttpRequest): Promise<UnroutedCall> => {
    if (request.method !== "GET" && request.method !== "HEAD") refuseForeign(request);
    const visitor = await authenticateVisitor(request, { authorize, clock, logger });
    return {
      request,
      query: new URLSearchParams(request.query),
      visitor,
      actor: selectActor(request, visitor),
    };
  };

  const accounts = createRateLimit({ perMinute: settings.requestsPerMinute, clock });
  const api = createRouter(
    [
      sessionRoute(settings),
      ...accountRoutes(settings, accounts),
      ...(content ? contentRoutes({ ...settings, content, logger }) : []),
    ],
    {
      context: async (request, parameter): Promise<ApiCall> => ({ ...(await openCall(request)), parameter }),
      onError: (thrown) => jsonError(toPortalError(thrown, logger)),
    },
  );

  /** Forwards a call to the webhook service, in the name of the visitor. */
  const callWebhooks = async (call: UnroutedCall): Promise<HttpResponse> => {
    const { actor } = call;
    if (webhooks === undefined || actor === undefined) throw notFoundHere();
    const payer = "operator" in actor ? payerOf(actor.operator) : actor.account;
    const seconds = accounts.take(payer);
    if (seconds > 0) throw rateLimited(seconds, "This account sends too many requests");
    const response = await webhooks.as(actor).handle(toWebhooksRequest(call), {
      onCost: (requests) => accounts.charge(payer, requests),
    });
    if (response === undefined) throw new HttpError(404, "not_found", "There is no such path.");
    return toPageResponse(response);
  };
  const handleWebhooks = async (request: HttpRequest): Promise<HttpResponse> => {
    try {
      return await callWebhooks(await openCall(request));
    } catch (thrown) {
      const response = jsonError(toPortalError(thrown, logger));
      return request.method === "HEAD" ? withoutBody(response) : response;
    }
  };

  const page = createPage(settings);
  const routes: Route<HttpRequest>[] = [
    {
      method: "GET",
      path: "/",
      async handle(request): Promise<HttpResponse> {
        await authenticateVisitor(request, { authorize, clock, logger });
        return page.respondWithPage(request);
      },
    },
    ...page.files.map((path) => ({
      method: "GET",
      path,
      handle: (request: HttpRequest) => page.respondWithFile(request),
    })),
  ];
  const site = createRouter(routes, {
    context: (request) => request,
    onError: (thrown, request) => page.respondWithError(request, toPortalError(thrown, logger)),
  });

  return Object.freeze<Service>({
    handle(request) {
      if (request.path.startsWith(WEBHOOKS_PREFIX)) return handleWebhooks(request);
      if (request.path.startsWith("/api/")) return api(request);
      return site({ ...request, path: page.toFilePath(request.path) });
    },
  });
}

// Checks who may see the page, and that the page itself sent a change. Knows no route.

const HOOK_MS = 5_000;

/**
 * The header that the page sends with every change. A page of another origin cannot send it, since
 * no CORS response allows it.
 */
const PAGE_HEADER = "x-postbell-portal";

/** The account that an operator looks at, percent-encoded. */
const ACCOUNT_HEADER = "x-postbell-account";
/** Of 256 characters with up to nine bytes each, percent-encoded. */
const MAX_ACCOUNT_HEADER = 4_096;

/** Returns in whose name webhooks are used. Only an operator may name an account. */
function selectActor(
  { headers }: HttpRequest,
  { name, operator, subscriber }: Visitor,
): Subscriber | Operator | undefined {
  const header = headers[ACCOUNT_HEADER];
  if (header === undefined) return subscriber;
  if (operator !== true || header.length > MAX_ACCOUNT_HEADER) throw notFoundHere();
  try {
    const account = decodeURIComponent(header);
    checkName("account", account);
    return { operator: name, account };
  } catch {
    throw notFoundHere();
  }
}

/**
 * Asks the host who sent a request.
 *
 * Errors: HttpError 401 `unauthorized`; HttpError 503 `unavailable` if the host throws, returns an
 * invalid value or takes longer than 5 s.
 */
async function authenticateVisitor(
  request: HttpRequest,
  { authorize, clock, logger }: { authorize: Authorize; clock: Clock; logger: Logger },
): Promise<Visitor> {
  let found: Visitor | null | undefined;
  try {
    const answer = (async () => authorize(request))();
    found = await withTimeout(clock, HOOK_MS, answer, () => new Error("no answer in time"));
    if (found) found = readVisitor(found);
  } catch (error) {
    logger.error({ error }, "authorize of the portal gave no usable answer");
    throw serviceUnavailable("Your session cannot be checked right now; try again later.");
  }
  if (found) return found;
  throw new HttpError(401, "unauthorized", "You are not signed in, or may not look at this page.");
}

function readVisitor({
  name,
  subscriber,
  userId,
  operator = false,
  canReadRecords = false,
}: Visitor): Visitor {
  if (typeof name !== "string") throw new TypeError("authorize must give a name.");
  if (userId !== undefined && !Number.isSafeInteger(userId)) throw new TypeError("userId must be a number.");
  if (typeof canReadRecords !== "boolean") throw new TypeError("canReadRecords must be true or false.");
  if (typeof operator !== "boolean") throw new TypeError("operator must be true or false.");
  if (operator) checkName("name", name);
  return {
    name,
    subscriber: subscriber ? readSubscriber(subscriber) : undefined,
    userId,
    operator,
    canReadRecords,
  };
}

const hostOf = (address: string): string | undefined => parseUrl(address)?.host;

/**
 * Refuses a change that the page itself did not send.
 *
 * `Sec-Fetch-Site` decides if the browser sends it, and `Origin` if not. The header of the page is
 * required in any case, except for a preview: a form of the page requests it for a frame, and it
 * changes nothing.
 * Errors: HttpError 403 `foreign_request`.
 * Source: Fetch Metadata Request Headers §2.4; Fetch Standard, "CORS-unsafe request-header names".
 */
function refuseForeign({ headers, baseUrl, path }: HttpRequest): void {
  const site = headers["sec-fetch-site"];
  const origin = headers["origin"];
  const hosts = [headers["host"], hostOf(baseUrl)];
  const isForeign =
    site === undefined ? origin !== undefined && !hosts.includes(hostOf(origin)) : site !== "same-origin";
  const isFromPage = isPreviewPath(path)
    ? site !== undefined || origin !== undefined
    : headers[PAGE_HEADER] !== undefined;
  if (isForeign || !isFromPage) {
    throw new HttpError(403, "foreign_request", "Changes are taken from the page of this portal only.");
  }
}

// Forwards requests of the page to the webhook service. The service checks everything; nothing that
// a request says about its sender is forwarded.

/** Request headers that are forwarded: they describe the body, its repetition or a precondition. */
const FORWARDED_HEADERS = [
  "content-type",
  "content-length",
  "content-encoding",
  "if-none-match",
  "idempotency-key",
] as const;

/** Returns the query to forward. Only a visitor who may read records gets the body. */
function toForwardedQuery({ query, visitor }: UnroutedCall): string {
  const isForwarded = ([name, value]: [string, string]): boolean =>
    visitor.canReadRecords === true || name !== "include" || value !== "body";
  return new URLSearchParams([...query].filter(isForwarded)).toString();
}

/** The response is for the page only, even if everybody may read it over REST. */
function toPageResponse({ status, headers, body }: HttpResponse): HttpResponse {
  const passed = Object.entries(headers).filter(([name]) => name !== "access-control-allow-origin");
  return { status, headers: { ...Object.fromEntries(passed), ...API_HEADERS }, body };
}

const toWebhooksRequest = (call: UnroutedCall): HttpRequest => {
  const { method, path, headers, body, baseUrl, signal } = call.request;
  return {
    method,
    path: path.slice("/api".length),
    query: toForwardedQuery(call),
    headers: pickHeaders(headers, FORWARDED_HEADERS),
    body,
    baseUrl: `${baseUrl}/api`,
    signal,
  };
};
