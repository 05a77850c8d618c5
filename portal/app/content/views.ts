/** The views of the content part, in the order of the navigation. */

import type { View } from "../view.js";
import { kinds } from "./kinds.js";
import { listView } from "./list.js";
import { newView } from "./new-record.js";
import { recordView } from "./record.js";
import { revisionsView } from "./revisions.js";

export const contentViews: readonly View[] = kinds.flatMap((kind) => [
  listView(kind),
  ...(kind.hasTrash ? [newView(kind)] : []),
  recordView(kind),
  ...(kind.hasTrash ? [revisionsView(kind)] : []),
]);
