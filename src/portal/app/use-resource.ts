/** Reads what a view shows, and keeps it fresh. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Api } from "./api.js";
import { usePage } from "./page-context.js";
import { texts } from "./texts.js";

/** A view could not be read. */
export interface ReadFailure {
  cause: unknown;
  /** Reads again; another failure takes the place of this one. */
  retry: () => Promise<void>;
}

export interface Resource<T> {
  /** `undefined` until the first read has succeeded. */
  data: T | undefined;
  /** Why the first read failed. Errors of later reads are announced once. */
  error: ReadFailure | undefined;
  /** Reads again. Rejects if that fails, unless the view was left or a later read has begun. */
  reload: () => Promise<void>;
}

/**
 * Calls `read` when the view is shown, when one of `inputs` changes, and every `everyMs` while the
 * page is visible. A read that a later one has overtaken is ignored.
 */
export function useResource<T>(
  read: (api: Api) => Promise<T>,
  inputs: unknown[],
  everyMs?: number,
): Resource<T> {
  const { api, say, fail } = usePage();
  const [data, setData] = useState<T>();
  const [error, setError] = useState<ReadFailure>();
  const latest = useRef(0);
  const newestRead = useRef(read);
  newestRead.current = read;
  const controller = useRef(new AbortController());

  const reload = useCallback(async (): Promise<void> => {
    latest.current += 1;
    const [request, { signal }] = [latest.current, controller.current];
    const isOvertaken = (): boolean => request !== latest.current || signal.aborted;
    let found: T;
    try {
      found = await newestRead.current(api.within(signal));
    } catch (thrown) {
      if (isOvertaken()) return;
      throw thrown;
    }
    if (isOvertaken()) return;
    setData(() => found);
    setError(undefined);
  }, [api]);

  const report = useCallback(
    (cause: unknown): void => setError({ cause, retry: () => reload().catch(report) }),
    [reload],
  );

  // The caller names the inputs of `read`.
  useEffect(() => {
    const next = new AbortController();
    controller.current = next;
    const { signal } = next;
    let hasFailed = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const plan = (): void => {
      if (everyMs !== undefined && !signal.aborted) timer = setTimeout(() => void refresh(), everyMs);
    };
    const refresh = async (): Promise<void> => {
      try {
        if (document.visibilityState === "visible") {
          await reload();
          if (hasFailed) say(texts.page.upToDate);
          hasFailed = false;
        }
      } catch (thrown) {
        if (!hasFailed && !signal.aborted) fail(thrown);
        hasFailed = true;
      }
      plan();
    };
    void reload()
      .catch((thrown: unknown) => {
        hasFailed = true;
        if (!signal.aborted) report(thrown);
      })
      .then(plan);
    return () => {
      next.abort();
      clearTimeout(timer);
    };
  }, [reload, report, everyMs, ...inputs]);

  return { data, error, reload };
}
