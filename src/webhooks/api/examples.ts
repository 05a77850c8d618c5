/** The example values of the OpenAPI document. Plain data. */

export const EXAMPLE_WEBHOOK = {
  id: "5e0f4f6e-7f0b-4a8e-9d5e-3d3f0c1f2a10",
  status: "ENABLED",
  url: "https://subscriber.example/hooks",
  createdDate: "2026-03-01T12:00:00.000Z",
  updatedDate: "2026-03-01T12:00:00.000Z",
} as const;

export const EXAMPLE_SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

export const EXAMPLE_DELIVERY_ID = `${EXAMPLE_WEBHOOK.id}.0b9d3a0e-2f4c-4f57-8d0c-6a1f5e7f3c21`;

export const EXAMPLE_ATTEMPT = {
  at: "2026-03-01T12:00:00.500Z",
  kind: "http",
  status: 500,
  code: "HTTP_500",
} as const;

export const EXAMPLE_DELIVERY = {
  id: EXAMPLE_DELIVERY_ID,
  webhookId: EXAMPLE_WEBHOOK.id,
  eventId: "0b9d3a0e-2f4c-4f57-8d0c-6a1f5e7f3c21",
  type: "patient.updated",
  subject: "Patient/123",
  state: "pending",
  reason: null,
  createdAt: "2026-03-01T12:00:00.000Z",
  startedAt: "2026-03-01T12:00:00.000Z",
  nextAttemptAt: "2026-03-01T12:15:20.000Z",
  endedAt: null,
} as const;
