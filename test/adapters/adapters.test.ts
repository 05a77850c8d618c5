/** Runs the adapter contract in every host. */

import { adapterContract } from "../contracts/adapter.js";
import { HOSTS } from "../support/hosts.js";

for (const host of HOSTS) adapterContract(host);
