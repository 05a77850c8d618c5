/** Seals and stores prepared events, and compares those that seem to have other content. */

import { isPostbellError } from "../../core/errors.js";
import type { ServiceBase } from "../config/config.js";
import type { EventSealer } from "../events/event-sealer.js";
import type { AppendRequest, AppendResponse, AppendResult, WebhookStore } from "../store.js";

const isStored = ({ results: [result] }: AppendResponse): boolean =>
  result !== undefined && "deliveries" in result;

const hasConflict = ({ results }: AppendResponse): boolean => results.at(-1)?.result === "conflict";

export class EventAppender {
  #store: WebhookStore;
  #sealer: EventSealer;

  constructor({ store, sealer }: ServiceBase) {
    this.#store = store;
    this.#sealer = sealer;
  }

  /** Like `append` of the store, with events as they were prepared, sealed under `sealEvents`. */
  async append(request: AppendRequest): Promise<AppendResponse> {
    const { events, transaction } = request;
    const sealed = this.#sealer.seals ? await this.#sealer.seal(events, transaction) : {};
    return this.#store.append({ ...request, ...sealed });
  }

  /**
   * Compares the event again that ended a call as a conflict. If it is a duplicate, it also stores
   * those after it. A sealed event has another digest, so an event that was emitted before
   * `sealEvents` was turned on or off seems to have other content.
   */
  async resolveConflict(request: AppendRequest, response: AppendResponse): Promise<AppendResponse> {
    const results: AppendResult[] = response.results.slice(0, -1);
    const [event, ...rest] = request.events.slice(results.length);
    if (event === undefined) return response;
    // The claims with the first events are in the response already.
    const further = { ...request, claim: undefined };
    try {
      const again = await this.#sealer.sealOtherwise(event, request.transaction);
      if (again === undefined) return response;
      const compared = await this.#store.append({ ...further, ...again });
      if (hasConflict(compared)) return response;
      results.push(...compared.results);
      // Events are stored in order: after one that is refused, none is.
      if (rest.length > 0 && isStored(compared)) {
        const next = { ...further, events: rest };
        const stored = await this.append(next);
        results.push(...(hasConflict(stored) ? await this.resolveConflict(next, stored) : stored).results);
      }
    } catch (error) {
      if (!isPostbellError(error)) throw error;
      results.push({ result: "refused", error });
    }
    return { ...response, results };
  }
}
