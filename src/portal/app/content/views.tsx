/** The views of content, and the list of a collection: search, status and pages. */

import { useLayoutEffect, useState } from "preact/hooks";
import type { ContentResponseJson, MeJson, RecordJson } from "../../content-shapes.js";
import type { Api } from "../api.js";
import { SelectField, TextField } from "../components/form.js";
import { FileText, Image, Newspaper } from "../components/icons.js";
import { Badge, ErrorMessage, Heading, Loading } from "../components/small.js";
import { type Column, Table } from "../components/table.js";
import { texts } from "../texts.js";
import { useResource } from "../use-resource.js";
import type { View } from "../view.js";
import { MediaGrid, UploadPanel } from "./media.js";
import { NewRecord, RecordView } from "./record.js";
import {
  formatSiteTime,
  getAuthor,
  getStatusTone,
  getTitle,
  type Kind,
  kinds,
  labelStatus,
  listStatuses,
} from "./records.js";
import { RevisionsView, useSiteZone } from "./revisions.js";

const PER_PAGE = 20;
const FIELDS = "id,title,status,date,modified,mime_type,alt_text,media_details,_links,_embedded";

/** The filter is part of the address, so that going back restores it. */
interface Filter {
  search: string;
  status: string;
}

interface ListPage {
  filter: Filter;
  number: number;
  records: RecordJson[];
  total: number;
  /** The visitor may write records of the collection, and sees those that are not published. */
  isWriter: boolean;
}

type Row = RecordJson & { key: string };

function buildAddress({ name }: Kind, query: Record<string, string>): string {
  const entries = Object.entries(query).filter(([, value]) => value !== "");
  return `#/${name}${entries.length === 0 ? "" : `?${new URLSearchParams(entries)}`}`;
}

async function readListPage(api: Api, kind: Kind, filter: Filter, number: number): Promise<ListPage> {
  const { search, status } = filter;
  const { body: me } = await api.get<ContentResponseJson<MeJson>>("content/users/me", {
    context: "edit",
    _fields: "id,capabilities",
  });
  const isWriter = me.capabilities[kind.capability] === true;
  const { body, total } = await api.get<ContentResponseJson<RecordJson[]>>(`content/${kind.name}`, {
    search,
    status: kind.hasTrash && isWriter ? status || "any" : undefined,
    page: number,
    per_page: PER_PAGE,
    orderby: search === "" ? "modified" : "relevance",
    _embed: "author",
    _fields: FIELDS,
  });
  return { filter, number, records: body, total: total ?? body.length, isWriter };
}

function describeCount({ name }: Kind, { filter: { search }, total, isWriter }: ListPage): string {
  const { count, found } = texts.content.kinds[name];
  const text = search === "" ? count({ count: total }) : found({ count: total, search });
  return isWriter ? text : text + texts.content.publishedOnly;
}

function getColumns({ name }: Kind): Column<Row>[] {
  const title: Column<Row> = {
    name: texts.content.fields.title,
    cell: (record) => (
      <a href={`#/${name}/${record.id}`} class="address">
        {getTitle(record)}
      </a>
    ),
  };
  const status: Column<Row> = {
    name: texts.content.fields.status,
    cell: (record) => <Badge tone={getStatusTone(record.status)}>{labelStatus(record.status)}</Badge>,
  };
  const author: Column<Row> = { name: texts.content.author, cell: getAuthor };
  const date: Column<Row> = {
    name: texts.content.fields.date,
    cell: (record) => formatSiteTime(record.date),
  };
  return [
    title,
    status,
    author,
    date,
    { name: texts.content.changed, cell: ({ modified }) => formatSiteTime(modified) },
  ];
}

interface FilterFormProps {
  kind: Kind;
  filter: Filter;
  hasStatus: boolean;
}

function FilterForm({ kind, filter: { search, status }, hasStatus }: FilterFormProps) {
  const [typed, setTyped] = useState({ search, status });
  // Before the visitor can type: a later effect would undo it.
  useLayoutEffect(() => setTyped({ search, status }), [search, status]);
  return (
    <search>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          location.hash = buildAddress(kind, { ...typed, search: typed.search.trim() });
        }}
      >
        <TextField
          label={texts.content.search}
          type="search"
          value={typed.search}
          onChange={(text) => setTyped({ ...typed, search: text })}
        />
        {hasStatus && (
          <SelectField
            label={texts.content.fields.status}
            value={typed.status}
            onChange={(value) => setTyped({ ...typed, status: value })}
            options={[["", texts.content.allExceptTrash], ...listStatuses()]}
          />
        )}
        <button type="submit" class="primary">
          {texts.content.search}
        </button>
      </form>
    </search>
  );
}

/** What stands in place of an empty list. */
function EmptyList({ kind, filter, isWriter }: { kind: Kind; filter: Filter; isWriter: boolean }) {
  if (filter.search !== "" || filter.status !== "")
    return (
      <p>
        {texts.content.nothingMatches} <a href={buildAddress(kind, {})}>{texts.content.clearSearch}</a>
      </p>
    );
  if (!isWriter) return <p>{texts.content.nothingPublished}</p>;
  if (!kind.hasTrash) return <p>{texts.media.empty}</p>;
  return (
    <section class="card narrow" aria-label={texts.content.kinds[kind.name].first}>
      <h2>{texts.content.kinds[kind.name].writeFirst}</h2>
      <p>{texts.content.firstText}</p>
    </section>
  );
}

function PageLinks({
  number,
  last,
  address,
}: {
  number: number;
  last: number;
  address: (number: number) => string;
}) {
  if (last <= 1) return null;
  return (
    <nav aria-label={texts.content.pagesOfList} class="pager">
      {number > 1 && <a href={address(number - 1)}>{texts.content.previous}</a>}
      <span>{texts.content.pageOf({ number, last })}</span>
      {number < last && <a href={address(number + 1)}>{texts.content.next}</a>}
    </nav>
  );
}

function Found({
  kind,
  filter,
  page,
  reload,
}: {
  kind: Kind;
  /** What the address says now, which may be newer than the page. */
  filter: Filter;
  page: ListPage;
  reload: () => Promise<void>;
}) {
  const { number, records, total, isWriter } = page;
  const zone = useSiteZone();
  return (
    <>
      {isWriter && !kind.hasTrash && <UploadPanel onUploaded={reload} />}
      <FilterForm kind={kind} filter={filter} hasStatus={isWriter && kind.hasTrash} />
      <p class="quiet" aria-live="polite">
        {describeCount(kind, page)}
      </p>
      {records.length === 0 && <EmptyList kind={kind} filter={page.filter} isWriter={isWriter} />}
      {records.length > 0 && !kind.hasTrash && <MediaGrid records={records} reload={reload} />}
      {records.length > 0 && kind.hasTrash && (
        <>
          <Table
            caption={texts.content.kinds[kind.name].many}
            columns={getColumns(kind)}
            header={texts.content.fields.title}
            rows={records.map((record) => ({ ...record, key: String(record.id) }))}
          />
          {zone !== "" && <p class="quiet zone">{texts.content.datesInZone({ zone })}</p>}
        </>
      )}
      <PageLinks
        number={number}
        last={Math.ceil(total / PER_PAGE)}
        address={(to) => buildAddress(kind, { ...page.filter, page: String(to) })}
      />
    </>
  );
}

function RecordList({ kind, query }: { kind: Kind; query: URLSearchParams }) {
  const filter: Filter = { search: query.get("search") ?? "", status: query.get("status") ?? "" };
  const number = Number(query.get("page")) || 1;
  const { data, error, reload } = useResource(
    (api) => readListPage(api, kind, filter, number),
    [filter.search, filter.status, number],
  );
  return (
    <>
      <div class="title-row">
        <Heading title={texts.content.kinds[kind.name].many} />
        {data?.isWriter && kind.hasTrash && (
          <a class="button primary" href={`#/${kind.name}/new`}>
            {texts.content.kinds[kind.name].new}
          </a>
        )}
      </div>
      {error !== undefined && <ErrorMessage error={error} />}
      {data === undefined && error === undefined && <Loading />}
      {data !== undefined && <Found kind={kind} filter={filter} page={data} reload={reload} />}
    </>
  );
}

/** Posts and pages are written here, and have revisions. Files are uploaded in their list. */
const viewsOfWritten = (kind: Kind): View[] => [
  { path: `/${kind.name}/new`, part: "content", component: () => <NewRecord kind={kind} /> },
  {
    path: `/${kind.name}/:id/revisions`,
    part: "content",
    component: ({ params: { id = "" } }) => <RevisionsView kind={kind} id={id} />,
  },
];

const ICONS = { posts: Newspaper, pages: FileText, media: Image } as const;

/** The views of content in the order of the navigation. If two paths match, the first one wins. */
export const contentViews: View[] = kinds.flatMap((kind) => [
  {
    path: `/${kind.name}`,
    part: "content",
    label: () => texts.content.kinds[kind.name].many,
    icon: ICONS[kind.name],
    searchPath: (text: string) => `/${kind.name}?${new URLSearchParams({ search: text })}`,
    component: ({ query }) => <RecordList kind={kind} query={query} />,
  },
  ...(kind.hasTrash ? viewsOfWritten(kind) : []),
  {
    path: `/${kind.name}/:id`,
    part: "content",
    component: ({ params: { id = "" } }) => <RecordView kind={kind} id={id} />,
  },
]);
