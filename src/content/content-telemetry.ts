/** Reports metrics of the content service: durations of requests, cache hits, sizes of caches. */

import type { Clock } from "../core/clock.js";
import { type Reading, seconds, type Telemetry } from "../core/telemetry.js";
import type { DirectHandler, HttpResponse } from "../http/types.js";
import type { ContentRepository } from "./repository/content-repository.js";

const METHODS: Set<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

export interface ContentTelemetry {
  countResponseLookUp: (isHit: boolean) => void;
  countRecordLookUps: (hits: number, misses: number) => void;
  /** Wraps a handler to measure its responses. A path is reported as the path of its route. */
  timed: (handle: DirectHandler, findRoutePath: (path: string) => string | undefined) => DirectHandler;
  observe: (repository: ContentRepository) => () => void;
}

export function createContentTelemetry(telemetry: Telemetry, clock: Clock): ContentTelemetry {
  const count = (cache: string, result: string, lookUps: number): void => {
    if (lookUps > 0) telemetry.record("contentCacheLookups", lookUps, { cache, result });
  };
  return {
    countResponseLookUp: (isHit) => count("answers", isHit ? "hit" : "miss", 1),
    countRecordLookUps(hits, misses) {
      count("records", "hit", hits);
      count("records", "miss", misses);
    },
    timed: (handle, findRoutePath) => (request) => {
      const began = clock.monotonic();
      const record = (response: HttpResponse | undefined): HttpResponse | undefined => {
        if (response === undefined) return undefined;
        telemetry.record("contentRequestDuration", seconds(clock.monotonic() - began), {
          // The value that the semantic conventions of HTTP prescribe for other methods.
          method: METHODS.has(request.method) ? request.method : "_OTHER",
          route: findRoutePath(request.path) ?? "none",
          status_class: `${Math.floor(response.status / 100)}xx`,
        });
        return response;
      };
      const response = handle(request);
      return response instanceof Promise ? response.then(record) : record(response);
    },
    observe: ({ index, held }) =>
      telemetry.observe(
        async (): Promise<Reading[]> => [
          { metric: "contentRecords", labels: { held: "columns" }, value: index.size() },
          { metric: "contentRecords", labels: { held: "whole" }, value: held() },
        ],
      ),
  };
}
