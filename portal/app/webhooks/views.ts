/** The views of the webhooks part, in the order of the navigation. */

import type { View } from "../view.js";
import { list } from "./list.js";

export const webhookViews: readonly View[] = [list];
