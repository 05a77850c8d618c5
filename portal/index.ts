/** `postbell/portal`: a page for operators and subscribers, as a service that an adapter mounts. */

import type { Clock } from "../src/core/clock.js";
import { invalidField } from "../src/core/invalid-field.js";
import { guardedLogger } from "../src/core/logger.js";
import { readJson } from "../src/http/body.js";
import { BODY_MS } from "../src/http/body-chunks.js";
import { createRouter, type Route } from "../src/http/router.js";
import type { HttpRequest, HttpResponse, Service } from "../src/http/types.js";
import { type ApiCall, type ApiRoute, jsonError, jsonResponse, toPortalError } from "./api.js";
import { contentRoutes } from "./content-api.js";
import { authenticateVisitor, refuseForeign } from "./guard.js";
import { type PortalOptions, readPortalOptions } from "./options.js";
import { asset, plainPage, renderPage } from "./page.js";
import type { SessionJson } from "./shapes.js";
import { webhookRoutes } from "./webhooks-api.js";

export type { Authorize, PortalOptions, PortalWebhooks, Visitor } from "./options.js";

const BODY_BYTES = 65_536;

async function readBodyFields(
  request: HttpRequest,
  clock: Clock,
): Promise<Readonly<Record<string, unknown>>> {
  const body = await readJson(request, { limit: BODY_BYTES, pace: { clock, ms: BODY_MS } });
  if (typeof body === "object" && body !== null && !Array.isArray(body))
    return body as Record<string, unknown>;
  throw invalidField("body", "The body must be a JSON object.");
}

/**
 * Creates the portal, a page with a small API of its own that an adapter mounts. It shows webhooks
 * with their health and deliveries, repairs them, and edits content.
 *
 * `authorize` is called for the page and for each of its requests. A webhook of another account is
 * reported as not found. The page loads nothing from other origins, and nothing runs in the
 * background.
 *
 * Errors: `invalid_option`, with the path of the option as `field`.
 */
export function createPortal(options: PortalOptions): Service {
  const {
    webhooks,
    content,
    authorize,
    title,
    requestsPerMinute,
    clock,
    logger: given,
  } = readPortalOptions(options);
  const logger = guardedLogger(given);

  const session: ApiRoute = {
    method: "GET",
    path: "/api/session",
    async handle({ visitor }) {
      const { name, subscriber, userId } = visitor;
      const parts = {
        webhooks: webhooks !== undefined && subscriber !== undefined,
        content: content !== undefined && userId !== undefined,
      };
      return jsonResponse(200, { title, name, parts } satisfies SessionJson);
    },
  };
  const routes: readonly ApiRoute[] = [
    session,
    ...(webhooks ? webhookRoutes(webhooks, { clock, requestsPerMinute }) : []),
    ...(content ? contentRoutes(content) : []),
  ];

  const api = createRouter(routes, {
    async context(request, parameter): Promise<ApiCall> {
      if (request.method !== "GET" && request.method !== "HEAD") refuseForeign(request);
      const visitor = await authenticateVisitor(request, { authorize, clock, logger });
      const query = new URLSearchParams(request.query);
      return { request, parameter, query, visitor, fields: () => readBodyFields(request, clock) };
    },
    onError: (thrown) => jsonError(toPortalError(thrown, logger)),
  });

  const files: readonly Route<HttpRequest>[] = [
    {
      method: "GET",
      path: "/",
      async handle(request): Promise<HttpResponse> {
        await authenticateVisitor(request, { authorize, clock, logger });
        return renderPage(request, title);
      },
    },
    { method: "GET", path: "/app.js", handle: async (request) => asset("app.js", request) },
    { method: "GET", path: "/app.css", handle: async (request) => asset("app.css", request) },
  ];
  const site = createRouter(files, {
    context: (request) => request,
    onError(thrown) {
      const { status, message, headers } = toPortalError(thrown, logger);
      return plainPage(status, message, headers);
    },
  });

  return Object.freeze<Service>({
    handle: (request) => (request.path.startsWith("/api/") ? api(request) : site(request)),
  });
}
