/** Reads the dates of an item, in local time and in UTC. A file may lack either form. Pure. */

import type { SiteZone } from "../text/dates.js";
import { parseDate } from "../text/dates.js";
import type { WxrItem } from "./types.js";

/** Returns epoch milliseconds, or `undefined`, also for `0000-00-00 00:00:00`. */
const parse = (text: string): number | undefined => parseDate(text)?.ms;

export interface ItemDates {
  readonly date: number;
  /** `null` if the file has no date, as for a draft that was never scheduled. */
  readonly dateGmt: number | null;
  readonly modified: number;
  readonly modifiedGmt: number;
}

/**
 * Reads the dates as they are in the file, whatever the time zone of this site. `now` is the date
 * of an item without any.
 */
export function readItemDates(item: WxrItem, zone: SiteZone, now: number): ItemDates {
  const gmt = parse(item.dateGmt);
  const changedGmt = parse(item.modifiedGmt);
  const changed = parse(item.modified) ?? (changedGmt === undefined ? undefined : zone.toLocal(changedGmt));
  const date =
    parse(item.date) ?? (gmt === undefined ? undefined : zone.toLocal(gmt)) ?? changed ?? zone.toLocal(now);
  const modified = changed ?? date;
  return {
    date,
    dateGmt: gmt ?? null,
    modified,
    modifiedGmt: changedGmt ?? (changed === undefined && gmt !== undefined ? gmt : zone.toUtc(modified)),
  };
}
