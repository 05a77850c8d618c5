/** What the content service reports: how requests were answered, and what the caches were good for. */

import type { Clock } from "../core/clock.js";
import { type Reading, seconds, type Telemetry } from "../core/telemetry.js";
import type { DirectHandler, HttpResponse } from "../http/types.js";
import type { ContentRepository } from "./repository/content-repository.js";

const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

export interface ContentTelemetry {
  readonly lookedUpAnswer: (isHit: boolean) => void;
  readonly lookedUpRecords: (hits: number, misses: number) => void;
  /** The same handler, each answer of it timed. A path is told as the pattern that it fits. */
  readonly timed: (handle: DirectHandler, routeOf: (path: string) => string | undefined) => DirectHandler;
  readonly observe: (library: Pick<ContentRepository, "index" | "held">) => () => void;
}

export function createContentTelemetry(telemetry: Telemetry, clock: Clock): ContentTelemetry {
  const lookedUp = (cache: string, result: string, count: number): void => {
    if (count > 0) telemetry.record("contentCacheLookups", count, { cache, result });
  };
  return {
    lookedUpAnswer: (isHit) => lookedUp("answers", isHit ? "hit" : "miss", 1),
    lookedUpRecords(hits, misses) {
      lookedUp("records", "hit", hits);
      lookedUp("records", "miss", misses);
    },
    timed: (handle, routeOf) => (request) => {
      const began = clock.monotonic();
      const record = (response: HttpResponse | undefined): HttpResponse | undefined => {
        if (response === undefined) return undefined;
        telemetry.record("contentRequestDuration", seconds(clock.monotonic() - began), {
          // As the semantic conventions of HTTP have it.
          method: METHODS.has(request.method) ? request.method : "_OTHER",
          route: routeOf(request.path) ?? "none",
          status_class: `${Math.floor(response.status / 100)}xx`,
        });
        return response;
      };
      const answer = handle(request);
      return answer instanceof Promise ? answer.then(record) : record(answer);
    },
    observe: ({ index, held }) =>
      telemetry.observe(
        async (): Promise<readonly Reading[]> => [
          { metric: "contentRecords", labels: { held: "columns" }, value: index.size() },
          { metric: "contentRecords", labels: { held: "whole" }, value: held() },
        ],
      ),
  };
}
