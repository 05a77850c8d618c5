/** The options that say which hosts may be reached, the same for deliveries and embeds. */

import { flag, hook, value } from "../core/options.js";
import type { Resolve } from "./resolver.js";

export const destinationOptions = {
  allowHttp: flag(false),
  allowPrivateNetworks: flag(false),
  ca: value<string | Uint8Array | undefined>(
    "certificates in PEM",
    (given) => typeof given === "string" || given instanceof Uint8Array,
    undefined,
  ),
  resolve: hook<Resolve>(),
};
