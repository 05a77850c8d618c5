/** What the content service reports: how requests were answered, and what the caches were good for. */

import type { Clock } from "../clock.js";
import type { Handler } from "../http/types.js";
import { type Reading, seconds, type Telemetry } from "../telemetry.js";
import type { Library } from "./library.js";

const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

export interface ContentReport {
  readonly lookedUpAnswer: (isHit: boolean) => void;
  readonly lookedUpRecords: (hits: number, misses: number) => void;
  /** The same handler, each answer of it timed. A path is told as the pattern that it fits. */
  readonly timed: (handle: Handler, routeOf: (path: string) => string | undefined) => Handler;
  readonly observe: (library: Pick<Library, "index" | "held">) => () => void;
}

export function createContentReport(telemetry: Telemetry, clock: Clock): ContentReport {
  const lookedUp = (cache: string, result: string, count: number): void => {
    if (count > 0) telemetry.record("contentCacheLookups", count, { cache, result });
  };
  return {
    lookedUpAnswer: (isHit) => lookedUp("answers", isHit ? "hit" : "miss", 1),
    lookedUpRecords(hits, misses) {
      lookedUp("records", "hit", hits);
      lookedUp("records", "miss", misses);
    },
    timed: (handle, routeOf) => async (request) => {
      const began = clock.monotonic();
      const answer = await handle(request);
      if (answer === undefined) return undefined;
      telemetry.record("contentRequestDuration", seconds(clock.monotonic() - began), {
        // As the semantic conventions of HTTP have it.
        method: METHODS.has(request.method) ? request.method : "_OTHER",
        route: routeOf(request.path) ?? "none",
        status_class: `${Math.floor(answer.status / 100)}xx`,
      });
      return answer;
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
