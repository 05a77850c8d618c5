/** The views of webhooks in the order of the navigation. If two paths match, the first one wins. */

import type { View } from "../view.js";
import { delivery } from "./delivery.js";
import { list } from "./list.js";
import { register } from "./register.js";
import { webhookPage } from "./webhook-page.js";

export const webhookViews: readonly View[] = [list, register, webhookPage, delivery];
