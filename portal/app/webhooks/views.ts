/** The views of the webhooks part, in the order of the navigation; where two paths fit, the first one is meant. */

import type { View } from "../view.js";
import { delivery } from "./delivery.js";
import { list } from "./list.js";
import { one } from "./one.js";
import { register } from "./register.js";

export const webhookViews: readonly View[] = [list, register, one, delivery];
