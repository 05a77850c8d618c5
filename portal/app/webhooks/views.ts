/** The views of the webhooks part, in the order of the navigation; where two paths fit, the first one is meant. */

import type { View } from "../view.js";
import { delivery } from "./delivery.js";
import { list } from "./list.js";
import { register } from "./register.js";
import { webhookPage } from "./webhook-page.js";

export const webhookViews: readonly View[] = [list, register, webhookPage, delivery];
