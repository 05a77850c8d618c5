/**
 * The calendar of one month, with links to the days on which posts were published. Without a month
 * in its attributes, it is that of the newest post: contents are cached until the site changes, so
 * that they must not depend on the time.
 */

import { type BlockSources, wrapperClass } from "./block-parts.js";
import type { BlockCall } from "./render-blocks.js";

/** Posts whose days count, newest first. */
const MAX_COLUMNS = 10_000;

export const MONTHS: string[] =
  "January February March April May June July August September October November December".split(" ");
const WEEKDAYS: string[] = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");

/** Months since the year 0. */
type Month = number;

const toMonth = (date: number): Month => {
  const day = new Date(date);
  return day.getUTCFullYear() * 12 + day.getUTCMonth();
};

function readMonth({ month, year }: BlockCall["attributes"]): Month | undefined {
  const isMonth = Number.isInteger(month) && Number.isInteger(year);
  const read = isMonth ? Number(year) * 12 + Number(month) - 1 : Number.NaN;
  return isMonth && Number(month) >= 1 && Number(month) <= 12 && read >= 0 && read < 120_000
    ? read
    : undefined;
}

export function renderCalendar(call: BlockCall, { records, settings }: BlockSources): string {
  const { attributes, site } = call;
  const posts = records.columns({
    type: "post",
    orderBy: "date",
    order: "desc",
    offset: 0,
    limit: MAX_COLUMNS,
  });
  const newest = posts[0];
  if (newest === undefined) return "";
  const shown = readMonth(attributes) ?? toMonth(newest.date);
  // The newest first, as the posts are.
  const months = [...new Set(posts.map(({ date }) => toMonth(date)))];
  const days = new Set(
    posts.flatMap(({ date }) => (toMonth(date) === shown ? [new Date(date).getUTCDate()] : [])),
  );
  const address = (month: Month): string =>
    `${site.home}/${Math.floor(month / 12)}/${String((month % 12) + 1).padStart(2, "0")}/`;
  const name = MONTHS[shown % 12] ?? "";
  const year = Math.floor(shown / 12);
  const showDay = (day: number): string => {
    if (!days.has(day)) return `<td>${day}</td>`;
    const label = `Posts published on ${name} ${day}, ${year}`;
    const href = `${address(shown)}${String(day).padStart(2, "0")}/`;
    return `<td><a href="${href}" aria-label="${label}">${day}</a></td>`;
  };
  const firstDay = settings.read().start_of_week;
  const head = [...WEEKDAYS.slice(firstDay), ...WEEKDAYS.slice(0, firstDay)]
    .map((weekday) => `\n\t\t<th scope="col" aria-label="${weekday}">${weekday.charAt(0)}</th>`)
    .join("");
  const abbreviate = (month: Month): string => (MONTHS[month % 12] ?? "").slice(0, 3);
  const earlier = months.find((month) => month < shown);
  const later = months.findLast((month) => month > shown);
  const previous =
    earlier === undefined ? "&nbsp;" : `<a href="${address(earlier)}">&laquo; ${abbreviate(earlier)}</a>`;
  const next =
    later === undefined ? "&nbsp;" : `<a href="${address(later)}">${abbreviate(later)} &raquo;</a>`;
  return (
    `<div ${wrapperClass("calendar", call)}><table id="wp-calendar" class="wp-calendar-table">\n` +
    `\t<caption>${name} ${year}</caption>\n\t<thead>\n\t<tr>${head}\n\t</tr>\n\t</thead>\n` +
    `\t<tbody>\n\t<tr>${renderDays(shown, firstDay, showDay)}\n\t</tr>\n\t</tbody>\n\t</table>` +
    `<nav aria-label="Previous and next months" class="wp-calendar-nav">\n` +
    `\t\t<span class="wp-calendar-nav-prev">${previous}</span>\n\t\t<span class="pad">&nbsp;</span>\n` +
    `\t\t<span class="wp-calendar-nav-next">${next}</span>\n\t</nav></div>`
  );
}

/** Returns the cells of a month, in rows of weeks, with empty ones at both ends. */
function renderDays(month: Month, firstDay: number, showDay: (day: number) => string): string {
  const start = new Date(0);
  start.setUTCFullYear(Math.floor(month / 12), month % 12, 1);
  const before = (start.getUTCDay() - firstDay + 7) % 7;
  start.setUTCFullYear(Math.floor(month / 12), (month % 12) + 1, 0);
  const last = start.getUTCDate();
  const parts = before > 0 ? [`\n\t\t<td colspan="${before}" class="pad">&nbsp;</td>`] : [];
  for (let day = 1; day <= last; day += 1) {
    if (day > 1 && (before + day - 1) % 7 === 0) parts.push("\n\t</tr>\n\t<tr>\n\t\t");
    parts.push(showDay(day));
  }
  const after = (7 - ((before + last) % 7)) % 7;
  if (after > 0) parts.push(`\n\t\t<td class="pad" colspan="${after}">&nbsp;</td>`);
  return parts.join("");
}
