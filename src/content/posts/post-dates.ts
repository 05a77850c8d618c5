/** The rules for the dates of a post, and for `publish` and `future`, which follow from them. */

import type { PostStatus } from "../records/records.js";
import { RestError } from "../rest/error.js";
import type { Site } from "../site.js";
import { toDateFields } from "../text/dates.js";
import type { FieldTarget } from "./post-field.js";
import type { PostChange, PostDates, Values } from "./post-type-handler.js";

const MINUTE_MS = 60_000;

/** Statuses in which the date of a post floats until a client sets it. */
const FLOATING: Set<PostStatus> = new Set(["draft", "pending", "auto-draft"]);

/**
 * Reads `date` and `date_gmt`.
 *
 * @throws RestError 400 `rest_invalid_date` for a text in the form of a date that does not exist
 */
export function resolvePostDates(values: Values, site: Site): PostDates {
  const { date, date_gmt: dateGmt } = values;
  const isReset = date === null || dateGmt === null;
  const text = typeof date === "string" ? { date } : typeof dateGmt === "string" ? { dateGmt } : undefined;
  if (text === undefined || isReset) return { sent: null, isReset };
  const sent = toDateFields(text, site.zone);
  if (sent === undefined) throw new RestError(400, "rest_invalid_date", "The date is invalid.");
  return { sent, isReset };
}

function setPublicationDate(
  post: FieldTarget["post"],
  { previous, dates: { sent, isReset } }: PostChange,
  { site, now }: { site: Site; now: number },
): void {
  const isFloatingDraft = previous !== null && FLOATING.has(previous.status) && previous.dateGmt === null;
  if (sent !== null) {
    post.date = sent.date;
    post.dateGmt = sent.dateGmt;
  } else if (isReset || isFloatingDraft || previous === null) {
    post.date = site.zone.toLocal(now);
    post.dateGmt = null;
  }
  if (post.dateGmt === null && !FLOATING.has(post.status)) post.dateGmt = site.zone.toUtc(post.date);
}

/** Sets when the post was published and modified. Call it once the status is set. */
export function setDates(
  post: FieldTarget["post"],
  change: PostChange,
  context: { site: Site; now: number },
): void {
  const { site, now } = context;
  setPublicationDate(post, change, context);
  if (change.previous === null) {
    post.modified = post.date;
    post.modifiedGmt = post.dateGmt ?? site.zone.toUtc(post.date);
  } else {
    post.modified = site.zone.toLocal(now);
    post.modifiedGmt = now;
  }
}

/** The columns that decide when a post is published. */
interface ScheduledPost {
  status: PostStatus;
  date: number;
  dateGmt: number | null;
}

/**
 * Returns `future` for a post whose publication date is at least a minute ahead, and `publish` for
 * a scheduled post whose time has come. Other statuses stay.
 */
export function resolveScheduledStatus(post: ScheduledPost, now: number, site: Site): PostStatus {
  const { status } = post;
  if (status !== "publish" && status !== "future") return status;
  const at = post.dateGmt ?? site.zone.toUtc(post.date);
  return at - now >= MINUTE_MS ? "future" : "publish";
}
