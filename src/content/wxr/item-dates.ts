/** The dates of an item: both forms, where the file gives one, both or neither. Pure. */

import type { SiteZone } from "../text/dates.js";
import { parseDate } from "../text/dates.js";
import type { WxrItem } from "./types.js";

/** Epoch ms; `undefined` also for `0000-00-00 00:00:00`. */
const read = (text: string): number | undefined => parseDate(text)?.ms;

export interface ItemDates {
  readonly date: number;
  /** `null`: the file says none, as of a draft that was never given a date. */
  readonly dateGmt: number | null;
  readonly modified: number;
  readonly modifiedGmt: number;
}

/** The digits of the file are kept in both forms, whatever the time zone of this site. `now`: for an item without any date. */
export function readItemDates(item: WxrItem, zone: SiteZone, now: number): ItemDates {
  const gmt = read(item.dateGmt);
  const changedGmt = read(item.modifiedGmt);
  const changed = read(item.modified) ?? (changedGmt === undefined ? undefined : zone.toLocal(changedGmt));
  const date =
    read(item.date) ?? (gmt === undefined ? undefined : zone.toLocal(gmt)) ?? changed ?? zone.toLocal(now);
  const modified = changed ?? date;
  return {
    date,
    dateGmt: gmt ?? null,
    modified,
    modifiedGmt: changedGmt ?? (changed === undefined && gmt !== undefined ? gmt : zone.toUtc(modified)),
  };
}
