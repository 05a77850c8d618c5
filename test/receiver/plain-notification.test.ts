/** A receiver of events without a FHIR resource. */

import { describe, expect, it } from "vitest";
import { createReceiver, type PlainNotification } from "../../src/receiver/index.js";
import { newSecret, signatureHeader } from "../../src/signature/signature.js";
import { manualClock } from "../../src/testing/manual-clock.js";

const secret = newSecret();
const AT = Date.parse("2026-03-01T12:00:00Z");
const ORDER = {
  id: "0b9d3a0e-2f4c-4f57-8d0c-6a1f5e7f3c21",
  type: "order.paid",
  timestamp: "2026-03-01T12:00:00.000Z",
  data: { order: "A-1" },
};

function open() {
  const events: PlainNotification[] = [];
  const receiver = createReceiver({
    secrets: secret,
    body: "plain",
    onEvent: (event) => void events.push(event),
    clock: manualClock(AT),
    logger: false,
  });
  const receive = (body: string) => {
    const header = signatureHeader({ secret, timestamp: AT / 1000, body: Buffer.from(body) });
    return receiver.receive({ body, headers: { "X-Service-Signature": header } });
  };
  return { receive, events };
}

describe("a receiver of plain events", () => {
  it("passes on an event once, as it was sent", async () => {
    const { receive, events } = open();
    const body = JSON.stringify(ORDER);
    expect(await receive(body)).toEqual({ ok: true, duplicate: false, event: ORDER });
    expect(await receive(body)).toEqual({ ok: true, duplicate: true, event: ORDER });
    expect(events).toEqual([ORDER]);
  });

  it("passes on null as data, and the mark of a test", async () => {
    const { receive, events } = open();
    const test = { ...ORDER, data: null, test: true } as const;
    expect(await receive(JSON.stringify(test))).toMatchObject({ ok: true });
    expect(events).toEqual([test]);
  });

  it.each([
    ["of another form", { id: ORDER.id, timestamp: ORDER.timestamp, event: {} }],
    ["without data", { ...ORDER, data: undefined }],
    ["with a type that is no text", { ...ORDER, type: 1 }],
    ["that is no object", [ORDER]],
  ])("refuses a signed body %s", async (_, body) => {
    const { receive, events } = open();
    expect(await receive(JSON.stringify(body))).toMatchObject({ ok: false, code: "invalid_notification" });
    expect(events).toEqual([]);
  });

  it("refuses to be created for a form that does not exist", () => {
    expect(() => createReceiver({ secrets: secret, body: "envelope", onEvent: () => {} } as never)).toThrow(
      expect.objectContaining({ code: "invalid_option", field: "body" }),
    );
  });
});
