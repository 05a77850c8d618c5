/** `postbell/portal`: a page for operators and subscribers, as a service that an adapter mounts. */

import { guardedLogger } from "../core/logger.js";
import { createRouter, type Route, withoutBody } from "../http/router.js";
import type { HttpRequest, HttpResponse, Service } from "../http/types.js";
import { type ApiCall, type ApiRoute, jsonError, jsonResponse, toPortalError } from "./api.js";
import { contentRoutes } from "./content-api.js";
import { notFoundHere } from "./forwarding.js";
import { authenticateVisitor, refuseForeign } from "./guard.js";
import { type PortalOptions, type PortalSettings, readPortalOptions } from "./options.js";
import { createPage } from "./page.js";
import type { SessionJson } from "./shapes.js";
import { createWebhooksApi, WEBHOOKS_PREFIX } from "./webhooks-api.js";

export type { Authorize, PortalOptions, PortalWebhooks, Visitor } from "./options.js";

/** The route that tells the page who its visitor is, and what it may show. */
const sessionRoute = ({ webhooks, content, title, logo, clock }: PortalSettings): ApiRoute => ({
  method: "GET",
  path: "/api/session",
  async handle({ visitor: { name, subscriber, userId, canReadRecords } }) {
    const session: SessionJson = {
      title,
      logo,
      name,
      parts: {
        webhooks: webhooks !== undefined && subscriber !== undefined,
        content: content !== undefined && userId !== undefined,
      },
      canReadRecords: canReadRecords === true,
      schedule: webhooks?.schedule ?? [],
      now: new Date(clock.now()).toISOString(),
    };
    return jsonResponse(200, session);
  },
});

/**
 * Creates the portal, a page with a small API of its own that an adapter mounts. It shows webhooks
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
 *   colors: { accent: "#7a1f5c", accentDark: "#f0a6d8" },
 * });
 * app.use("/portal", expressAdapter(portal));
 */
export function createPortal(options: PortalOptions): Service {
  const settings = readPortalOptions(options);
  const { webhooks, content, authorize, clock } = settings;
  const logger = guardedLogger(settings.logger);

  /** Identifies the visitor. A change must come from the page itself. */
  const openCall = async (request: HttpRequest): Promise<Omit<ApiCall, "parameter">> => {
    if (request.method !== "GET" && request.method !== "HEAD") refuseForeign(request);
    const visitor = await authenticateVisitor(request, { authorize, clock, logger });
    return { request, query: new URLSearchParams(request.query), visitor };
  };

  const api = createRouter([sessionRoute(settings), ...(content ? contentRoutes(content) : [])], {
    context: async (request, parameter): Promise<ApiCall> => ({ ...(await openCall(request)), parameter }),
    onError: (thrown) => jsonError(toPortalError(thrown, logger)),
  });

  const forward = webhooks && createWebhooksApi(webhooks, settings);
  const handleWebhooks = async (request: HttpRequest): Promise<HttpResponse> => {
    try {
      const call = await openCall(request);
      if (forward === undefined) throw notFoundHere();
      return await forward(call);
    } catch (thrown) {
      const response = jsonError(toPortalError(thrown, logger));
      return request.method === "HEAD" ? withoutBody(response) : response;
    }
  };

  const page = createPage(settings);
  const routes: readonly Route<HttpRequest>[] = [
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
      handle: async (request: HttpRequest) => page.respondWithFile(request),
    })),
  ];
  const site = createRouter(routes, {
    context: (request) => request,
    onError(thrown) {
      const { status, message, headers } = toPortalError(thrown, logger);
      return page.respondWithMessage(status, message, headers);
    },
  });

  return Object.freeze<Service>({
    handle(request) {
      if (request.path.startsWith(WEBHOOKS_PREFIX)) return handleWebhooks(request);
      return request.path.startsWith("/api/") ? api(request) : site(request);
    },
  });
}
