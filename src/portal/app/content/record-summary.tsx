/** A record to read: its facts, its picture and its texts. */

import type { RecordJson } from "../../content-shapes.js";
import { Facts } from "../components/small.js";
import { usePage } from "../page-context.js";
import { formatSiteTime, getAuthor, getPicture, getText, type Kind, labelStatus } from "./kinds.js";
import { LABELS } from "./record-fields.js";

export interface RecordProps {
  readonly kind: Kind;
  readonly record: RecordJson;
}

/** What is known about a record besides its fields. */
export function RecordSummary({ kind, record }: RecordProps) {
  const { api } = usePage();
  const { filesize, width, height } = record.media_details ?? {};
  const picture = getPicture(record, "large");
  const hasRevisions = record._links?.["version-history"] !== undefined;
  const isOnSite = /^https?:/.test(record.link) && record.status !== "trash";
  return (
    <>
      {picture !== undefined && (
        <img
          src={api.url(picture)}
          alt={record.alt_text || "The picture, without an alternative text"}
          class="preview"
        />
      )}
      <Facts
        rows={[
          ["Status", record.status !== "inherit" && labelStatus(record.status)],
          ["Author", getAuthor(record) || null],
          ["Date", formatSiteTime(record.date)],
          ["Changed", formatSiteTime(record.modified)],
          ["Type", record.mime_type],
          ["Size", filesize !== undefined && `${filesize.toLocaleString("en")} bytes`],
          ["Pixels", Boolean(width) && `${width} × ${height}`],
          ["History", hasRevisions && <a href={`#/${kind.name}/${record.id}/revisions`}>Revisions</a>],
          [
            "On the site",
            isOnSite && (
              <a href={record.link} rel="noreferrer">
                {record.link}
              </a>
            ),
          ],
        ]}
      />
    </>
  );
}

/** The texts of a record for a visitor who may not edit it, as plain text. */
export function RecordTexts({ kind, record }: RecordProps) {
  return kind.fields.map((name) => {
    const value = record[name];
    if (name === "title" || value === undefined || typeof value === "string") return null;
    const text = getText(value);
    return text === "" ? null : (
      <section key={name}>
        <h2>{LABELS[name]}</h2>
        <pre>{text}</pre>
      </section>
    );
  });
}
