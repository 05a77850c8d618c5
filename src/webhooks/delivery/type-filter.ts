/** Checks the event types that calls of the delivery log name. Pure. */

import { PostbellError } from "../../core/errors.js";
import { type Catalogue, focalTypes, TEST_EVENT_TYPE } from "../event-types/catalogue.js";

/** @throws `unknown_event_type` unless the type is in the catalogue, or that of a test. */
export function requireLoggedType(catalogue: Catalogue, type: unknown): void {
  if (typeof type !== "string") {
    const message = "type must be a string, the name of an event type.";
    throw new PostbellError("invalid_request", message, { field: "type" });
  }
  if (type !== TEST_EVENT_TYPE) focalTypes(catalogue, type);
}
