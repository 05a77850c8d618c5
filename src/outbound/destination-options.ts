/** The options that define which hosts may be reached, for deliveries and embeds. */

import { flag, hook, type Option } from "../core/options.js";
import { checkCertificates } from "./certificates.js";
import type { Resolve } from "./resolver.js";

/**
 * Which hosts may be reached. By default only public hosts, over HTTPS.
 *
 * @example
 * // In a test, the endpoint is a server of the test itself.
 * destinations: { allowHttp: true, allowPrivateNetworks: true }
 */
export interface DestinationOptions {
  /** Allows `http:` URLs. Default false. For tests. */
  readonly allowHttp?: boolean | undefined;
  /**
   * Allows hosts that are not public, on any port. Default false. For tests and for subscribers
   * inside your network: everybody who may register a URL can then reach that network.
   */
  readonly allowPrivateNetworks?: boolean | undefined;
  /**
   * Certificates in PEM that are trusted in addition to Node's built-in roots.
   * `NODE_EXTRA_CA_CERTS` is then ignored. Default: Node's roots. Set it for endpoints with
   * certificates of your own authority. Text that is not a list of certificates is refused.
   */
  readonly ca?: string | Uint8Array | undefined;
  /**
   * Replaces the lookup of host names with the system's DNS servers. That lookup ignores hosts
   * files and search domains, so set this option to reach names that are only there.
   */
  readonly resolve?: Resolve | undefined;
}

const certificates: Option<string | Uint8Array | undefined> = {
  default: undefined,
  unit: "certificates in PEM",
  expected: checkCertificates,
};

export const destinationOptions = {
  allowHttp: flag(false),
  allowPrivateNetworks: flag(false),
  ca: certificates,
  resolve: hook<Resolve>(),
};
