/** The views of content in the order of the navigation. If two paths match, the first one wins. */

import type { View } from "../view.js";
import { type Kind, kinds } from "./kinds.js";
import { RecordList } from "./list.js";
import { NewRecord } from "./new-record.js";
import { RecordView } from "./record.js";
import { RevisionsView } from "./revisions.js";

/** Posts and pages are written here, and have revisions. Files are uploaded in their list. */
const viewsOfWritten = (kind: Kind): readonly View[] => [
  { path: `/${kind.name}/new`, part: "content", component: () => <NewRecord kind={kind} /> },
  {
    path: `/${kind.name}/:id/revisions`,
    part: "content",
    component: ({ params: { id = "" } }) => <RevisionsView kind={kind} id={id} />,
  },
];

export const contentViews: readonly View[] = kinds.flatMap((kind) => [
  {
    path: `/${kind.name}`,
    part: "content",
    label: kind.many,
    component: ({ query }) => <RecordList kind={kind} query={query} />,
  },
  ...(kind.hasTrash ? viewsOfWritten(kind) : []),
  {
    path: `/${kind.name}/:id`,
    part: "content",
    component: ({ params: { id = "" } }) => <RecordView kind={kind} id={id} />,
  },
]);
