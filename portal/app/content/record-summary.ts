/** A record to read: its facts, its picture and its texts. */

import type { RecordJson } from "../../content-shapes.js";
import { type Child, h } from "../dom.js";
import { facts } from "../forms.js";
import type { PageContext } from "../view.js";
import { getAuthor, getPicture, getText, type Kind, moment, statusWord } from "./kinds.js";
import { LABELS } from "./record-form.js";

type Fact = readonly [term: string, value: Child];

function listLinks(kind: Kind, record: RecordJson): readonly Fact[] {
  const hasRevisions = record._links?.["version-history"] !== undefined;
  const isOnSite = /^https?:/.test(record.link) && record.status !== "trash";
  return [
    ["Earlier", hasRevisions && h("a", { href: `#/${kind.name}/${record.id}/revisions` }, "Revisions")],
    ["On the site", isOnSite && h("a", { href: record.link, rel: "noreferrer" }, record.link)],
  ];
}

/** Renders what is known about a record besides its fields. */
export function renderSummary(kind: Kind, record: RecordJson, { api }: PageContext): readonly Child[] {
  const { filesize, width, height } = record.media_details ?? {};
  const picture = getPicture(record, "large");
  const author = getAuthor(record);
  const rows: readonly Fact[] = [
    ["Status", record.status !== "inherit" && statusWord(record.status)],
    ["Author", author !== "" && author],
    ["Date", moment(record.date)],
    ["Changed", moment(record.modified)],
    ["Kind", record.mime_type],
    ["Size", filesize !== undefined && `${filesize.toLocaleString("en")} bytes`],
    ["Pixels", Boolean(width) && `${width} × ${height}`],
    ...listLinks(kind, record),
  ];
  return [
    picture !== undefined &&
      h("img", {
        src: api.url(picture),
        alt: record.alt_text || "The picture, without an alternative text",
        class: "preview",
      }),
    facts(rows.filter(([, value]) => value)),
  ];
}

/** Renders the texts of a record for a visitor who may not edit it, as plain text. */
export function renderTexts(kind: Kind, record: RecordJson): HTMLElement {
  const texts = kind.fields.flatMap((name) => {
    const value = record[name];
    if (name === "title" || value === undefined || typeof value === "string") return [];
    const text = getText(value);
    return text === "" ? [] : [h("h2", {}, LABELS[name]), h("pre", {}, text)];
  });
  return h("div", {}, texts);
}
