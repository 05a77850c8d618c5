/**
 * The JSON that the page and its server exchange. Dates are ISO 8601. Types only, since both sides
 * are compiled with them.
 */

/** The visitor, and the parts of the page that the visitor may use. */
export interface SessionJson {
  readonly title: string;
  /** The visitor's name. */
  readonly name: string;
  readonly parts: { readonly webhooks: boolean; readonly content: boolean };
}

export interface ErrorJson {
  readonly error: {
    readonly code: string;
    readonly message: string;
    /** The field of the request at fault. */
    readonly field?: string;
  };
}

export interface WebhookJson {
  readonly id: string;
  readonly url: string;
  readonly status: "ENABLED" | "DISABLED";
  /** `null`: every type, also future ones. */
  readonly eventTypes: readonly string[] | null;
  readonly createdDate: string;
  readonly updatedDate: string;
}

export interface StatsJson {
  readonly pending: number;
  readonly delivered: number;
  readonly failed: number;
  readonly withheld: number;
  readonly health: {
    readonly status: "ok" | "failing" | "warned" | "disabled";
    readonly failingSince: string | null;
    readonly warnAt: string | null;
    readonly disableAt: string | null;
  };
  readonly nextAttemptAt: string | null;
  readonly lastAttempt: {
    readonly at: string;
    readonly kind: string;
    readonly status: number | null;
    readonly code: string;
  } | null;
}

export interface WebhookWithStats {
  readonly webhook: WebhookJson;
  readonly stats: StatsJson;
}

export interface WebhookPage {
  readonly webhooks: readonly WebhookWithStats[];
  readonly next: string | null;
}

export interface WebhookDetail extends WebhookWithStats {
  /** When the attempts of a delivery are due, in milliseconds after its first one. */
  readonly schedule: readonly number[];
  /** The server's time. */
  readonly now: string;
}

export interface SecretJson {
  readonly secret: string;
}

export interface AttemptJson {
  readonly at: string;
  readonly durationMs: number;
  readonly step: number;
  readonly isExtra: boolean;
  readonly kind: string;
  readonly status: number | null;
  readonly code: string;
  /** The first characters of the answer to a failed attempt. */
  readonly excerpt: string | null;
}

export type DeliveryStateJson = "pending" | "delivered" | "failed" | "withheld";

export interface DeliveryJson {
  readonly id: string;
  readonly eventId: string;
  readonly type: string;
  readonly state: DeliveryStateJson;
  /** Why it ended undelivered. */
  readonly reason: string | null;
  readonly createdAt: string;
  readonly startedAt: string | null;
  readonly nextAttemptAt: string | null;
  readonly endedAt: string | null;
  readonly attempts: readonly AttemptJson[];
}

export interface DeliveryPage {
  readonly deliveries: readonly DeliveryJson[];
  readonly next: string | null;
}

export interface DeliveryDetail {
  readonly webhook: WebhookJson;
  readonly delivery: DeliveryJson;
}

export interface EventTypesJson {
  readonly eventTypes: readonly string[];
}
