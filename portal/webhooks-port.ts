/** What of a webhook service the portal works with. */

import type { Deliveries, Delivery } from "../src/webhooks/deliveries.js";
import type { Registrations } from "../src/webhooks/registrations.js";
import type { DeliveryState } from "../src/webhooks/store.js";

export interface PortalStats {
  readonly pending: number;
  readonly delivered: number;
  readonly failed: number;
  readonly withheld: number;
  readonly health: {
    readonly status: "ok" | "failing" | "warned" | "disabled";
    readonly failingSince: Date | null;
    readonly warnAt: Date | null;
    readonly disableAt: Date | null;
  };
  readonly nextAttemptAt: Date | null;
  readonly lastAttempt: {
    readonly at: Date;
    readonly kind: string;
    readonly status: number | null;
    readonly code: string;
  } | null;
}

export interface PortalWebhooks {
  readonly registrations: Registrations;
  readonly deliveries: Pick<Deliveries, "get" | "resend" | "recover"> & {
    list(request: {
      readonly webhookId: string;
      readonly state?: DeliveryState | undefined;
      readonly type?: string | undefined;
      readonly since?: Date | string | undefined;
      readonly until?: Date | string | undefined;
      readonly cursor?: string | undefined;
      readonly limit?: number | undefined;
    }): Promise<{ readonly deliveries: readonly Delivery[]; readonly next: string | null }>;
    test(request: { readonly webhookId: string; readonly type?: string | undefined }): Promise<{
      readonly id: string;
    }>;
    stats(request: { readonly webhookId: string }): Promise<PortalStats>;
  };
  eventTypes(): readonly string[];
  readonly schedule: readonly number[];
}
