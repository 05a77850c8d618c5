/** The revisions of a post or page: compares two of them side by side, and restores one. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ContentResponseJson, RecordJson, RevisionJson, SiteJson } from "../../content-shapes.js";
import { ApiError } from "../api.js";
import { ActionButton, useConfirmation } from "../components/button.js";
import { SelectField } from "../components/form.js";
import { ErrorMessage, Heading, Loading } from "../components/small.js";
import { useLeaveSignal, usePage } from "../page-context.js";
import { texts } from "../texts.js";
import { type ReadFailure, useResource } from "../use-resource.js";
import {
  getAuthor,
  getTitle,
  hasSameLines,
  ifUnchanged,
  isConflict,
  type Kind,
  type LinePair,
  pairLines,
} from "./records.js";

const TEXTS = ["title", "content", "excerpt"] as const;
const FIELDS = [...TEXTS, "modified_gmt"].join();

type Version = RecordJson;

/** What is chosen for the record as it is now; else the ID of a revision. */
const NOW = "now";

interface History {
  kind: Kind;
  /** The path of the record in the API. */
  path: string;
  record: RecordJson;
  revisions: RevisionJson[];
  mayRestore: boolean;
}

function nameRevision(revision: RevisionJson): string {
  const author = getAuthor(revision);
  const date = revision.date.replace("T", " ");
  return author === "" ? date : texts.content.revisionBy({ date, author });
}

/** Reads both versions, and notes what the visitor has seen of the present one. */
function useVersions({ path, record }: History, left: string, right: string) {
  const seen = useRef<Version>(record);
  const resource = useResource(
    async (api) => {
      const read = async (choice: string): Promise<Version> => {
        const url = choice === NOW ? path : `${path}/revisions/${choice}`;
        const query = { context: "edit", _fields: FIELDS };
        const { body } = await api.get<ContentResponseJson<Version>>(url, query);
        if (choice === NOW) seen.current = body;
        return body;
      };
      return { left, right, versions: await Promise.all([read(left), read(right)]) };
    },
    [left, right],
  );
  return { ...resource, seen };
}

/** Returns the function that restores a revision, unless the record is newer than `seen`. */
function useRestore({ kind, path, record }: History, showPresent: () => Promise<void>) {
  const { api, say, go } = usePage();
  const signal = useLeaveSignal();
  const [ask, question] = useConfirmation();
  const restore = async (revision: string, name: string, seen: Version): Promise<void> => {
    const isConfirmed = await ask({
      title: texts.content.restoreTitle({ name }),
      explanation: texts.content.presentStays,
      confirm: texts.content.restore,
    });
    if (!isConfirmed) return;
    try {
      await api.within(signal).send("POST", `${path}/revisions/${revision}/restore`, {}, ifUnchanged(seen));
      say(texts.content.restored({ name }));
      go(`/${kind.name}/${record.id}`);
    } catch (error) {
      if (!isConflict(error)) throw error;
      say(texts.content.notRestored, "failed");
      await showPresent();
    }
  };
  return [restore, question] as const;
}

function Differences({
  names,
  versions: [left, right],
}: {
  names: [left: string, right: string];
  versions: [left: Version, right: Version];
}) {
  const tables = TEXTS.flatMap((name) => {
    const pair = [left[name]?.raw ?? "", right[name]?.raw ?? ""] as const;
    return hasSameLines(...pair)
      ? []
      : [<Comparison key={name} title={texts.content.fields[name]} labels={names} texts={pair} />];
  });
  return tables.length === 0 ? <p>{texts.content.same}</p> : tables;
}

function RevisionComparison(history: History) {
  const { revisions, mayRestore } = history;
  const zone = useSiteZone();
  // The newest revision is the present version, unless it was never changed again.
  const [left, setLeft] = useState(String((revisions[1] ?? revisions[0])?.id));
  const [right, setRight] = useState(NOW);
  const { data, error, reload, seen } = useVersions(history, left, right);
  const [restore, question] = useRestore(history, async () => (right === NOW ? reload() : setRight(NOW)));
  const options = [
    ...revisions.map((revision) => [String(revision.id), nameRevision(revision)] as const),
    [NOW, texts.content.present] as const,
  ];
  const nameOf = (choice: string): string => options.find(([value]) => value === choice)?.[1] ?? "";
  return (
    <>
      {zone !== "" && <p class="quiet">{texts.content.timesInZone({ zone })}</p>}
      <div class="row">
        <SelectField label={texts.content.chooseEarlier} value={left} onChange={setLeft} options={options} />
        <SelectField label={texts.content.chooseLater} value={right} onChange={setRight} options={options} />
      </div>
      {error !== undefined && <ErrorMessage error={error} />}
      <div aria-live="polite">
        {data !== undefined && (
          <Differences names={[nameOf(data.left), nameOf(data.right)]} versions={data.versions} />
        )}
      </div>
      {mayRestore && left !== NOW && (
        <ActionButton act={() => restore(left, nameOf(left), seen.current)}>
          {texts.content.restoreLeft}
        </ActionButton>
      )}
      {question}
    </>
  );
}

export function RevisionsView({ kind, id }: { kind: Kind; id: string }) {
  const path = `content/${kind.name}/${id}`;
  const { data, error } = useResource(
    (api) =>
      Promise.all([
        api.get<ContentResponseJson<RecordJson>>(path, { context: "edit" }),
        api.get<ContentResponseJson<RevisionJson[]>>(`${path}/revisions`, {
          context: "edit",
          _embed: "author",
          _fields: "id,date,_links,_embedded",
        }),
      ]),
    [path],
  );
  if (data === undefined) return <Pending title={texts.content.revisions} error={error} />;
  const [{ body: record, allow }, { body: revisions }] = data;
  const mayRestore = allow.includes("POST") && record.status !== "trash";
  return (
    <>
      <Heading title={texts.content.revisionsOf({ title: getTitle(record) })} />
      <p>
        <a href={`#/${kind.name}/${id}`}>{texts.content.kinds[kind.name].back}</a>
      </p>
      {revisions.length === 0 ? (
        <p>{texts.content.noRevisions}</p>
      ) : (
        <RevisionComparison
          kind={kind}
          path={path}
          record={record}
          revisions={revisions}
          mayRestore={mayRestore}
        />
      )}
    </>
  );
}

/** `error`: why it cannot be read. */
export function Pending({ title, error }: { title: string; error: ReadFailure | undefined }) {
  const isMissing = error?.cause instanceof ApiError && error.cause.status === 404;
  return (
    <>
      <Heading title={isMissing ? texts.page.notFound : title} />
      {error === undefined ? <Loading /> : <ErrorMessage error={error} />}
    </>
  );
}

// What all views of content share.

/** The site's zone once it was read. It does not change while the page is open. */
let readingZone: Promise<string> | undefined;

/** Returns the zone of the site's dates; the empty text until it was read, or if it cannot be. */
export function useSiteZone(): string {
  const { api } = usePage();
  const [name, setName] = useState("");
  useEffect(() => {
    readingZone ??= api.get<SiteJson>("content/site").then(({ zone }) => zone);
    readingZone.then(setName, () => {
      readingZone = undefined;
    });
  }, [api]);
  return name;
}

// Two texts side by side, as a table. Signs and words mark differences, not only colours.

/** Unchanged lines that are shown around a change. */
const AROUND = 3;

const isSame = ({ left, right }: LinePair): boolean => left === right;

/** A row of the table: a pair of lines, or how many unchanged lines are not shown. */
type Row = LinePair | number;

function toRows(pairs: LinePair[]): Row[] {
  const rows: Row[] = [];
  for (const [index, pair] of pairs.entries()) {
    const last = rows.at(-1);
    const isNear = !pairs.slice(Math.max(0, index - AROUND), index + AROUND + 1).every(isSame);
    if (isNear) rows.push(pair);
    else if (typeof last === "number") rows[rows.length - 1] = last + 1;
    else rows.push(1);
  }
  return rows;
}

function Line({ pair, side }: { pair: LinePair; side: "left" | "right" }) {
  const text = pair[side];
  if (text === null) return <td class="none" />;
  if (isSame(pair)) return <td>{text}</td>;
  const isLeft = side === "left";
  const Tag = isLeft ? "del" : "ins";
  return (
    <td class={side}>
      <span class="unseen">{isLeft ? texts.content.removedLine : texts.content.addedLine}</span>
      <span aria-hidden="true">{isLeft ? "− " : "+ "}</span>
      <Tag>{text}</Tag>
    </td>
  );
}

/** Shows where two texts differ. */
export function Comparison({
  title,
  labels,
  texts: [left, right],
}: {
  title: string;
  labels: readonly [left: string, right: string];
  texts: readonly [left: string, right: string];
}) {
  const rows = useMemo(() => toRows(pairLines(left, right)), [left, right]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls what is too wide.
    <section class="scroll" aria-label={texts.content.compared({ title })} tabIndex={0}>
      <table class="compare">
        <caption>{title}</caption>
        <thead>
          <tr>
            <th scope="col">{labels[0]}</th>
            <th scope="col">{labels[1]}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {typeof row === "number" ? (
                <td colSpan={2} class="quiet">
                  {texts.content.unchanged({ count: row })}
                </td>
              ) : (
                <>
                  <Line pair={row} side="left" />
                  <Line pair={row} side="right" />
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
