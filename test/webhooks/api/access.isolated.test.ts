import { describe, expect, it, onTestFinished } from "vitest";
import type { WebhooksOptions } from "../../../src/index.js";
import {
  DAY,
  eventLoopTurn,
  forever,
  type Harness,
  type HarnessOptions,
  HOUR,
  MINUTE,
  SECOND,
  START,
  startHarness,
} from "../../support/webhook-harness.js";

type CanRead = WebhooksOptions["access"]["canRead"];
type Resource = Parameters<CanRead>[1];

/**
 * A service whose host answers `canRead` so, and an endpoint registered with it. What a host
 * returns is not always what its types say.
 */
async function withAccess(
  canRead: (resource: Resource, subscriber: Parameters<CanRead>[0]) => unknown,
  { options, ...rest }: HarnessOptions = {},
): Promise<Harness & { id: string }> {
  const harness = await startHarness({
    options: {
      access: {
        authenticate: () => null,
        canRead: (subscriber, resource) => canRead(resource, subscriber) as boolean,
      },
      retry: { jitter: 0 },
      ...options,
    },
    ...rest,
  });
  const { id } = await harness.register();
  return { ...harness, id };
}

const patientWithOrganization = {
  resource: {
    resourceType: "Patient",
    id: "1",
    managingOrganization: { reference: "Organization/o" },
    generalPractitioner: [{ reference: "Practitioner/p" }],
  },
  related: [
    { resourceType: "Organization", id: "o" },
    { resourceType: "Practitioner", id: "p" },
  ],
};

interface Entry {
  readonly fullUrl: string;
  readonly resource: Resource & {
    readonly managingOrganization: { readonly reference: string };
    readonly generalPractitioner: readonly { readonly reference: string }[];
  };
}

/** The entries of the last body sent. */
function lastEntries({ sent }: Harness): readonly Entry[] {
  const { event } = JSON.parse(Buffer.from(sent.at(-1)?.body ?? []).toString()) as {
    event: { context: { resource: { entry: readonly Entry[] } }[] };
  };
  return event.context[0]?.resource.entry ?? [];
}

describe("canRead", () => {
  it("is asked about each entry, for the key that created the webhook", async () => {
    const asked: unknown[] = [];
    const { emit, quiet } = await withAccess((resource, subscriber) => {
      asked.push([resource.resourceType, resource["id"], subscriber]);
      return true;
    });
    await emit(patientWithOrganization);
    await quiet();
    const subscriber = { id: "key-1", account: "clinic" };
    expect(asked).toEqual([
      ["Patient", "1", subscriber],
      ["Organization", "o", subscriber],
      ["Practitioner", "p", subscriber],
    ]);
  });

  it("is shown the resource as it was emitted, and can change nothing of it", async () => {
    const shown: unknown[] = [];
    const harness = await withAccess((resource) => {
      if (resource.resourceType === "Patient") {
        shown.push([resource.id, resource["managingOrganization"]]);
        Object.assign(resource, { id: "changed", managingOrganization: null });
      }
      return true;
    });
    await harness.register();
    await harness.emit(patientWithOrganization);
    await harness.quiet();
    const asEmitted = ["1", { reference: "Organization/o" }];
    expect(shown).toEqual([asEmitted, asEmitted]);
    expect(lastEntries(harness)).toHaveLength(3);
    expect(lastEntries(harness)[0]?.resource["id"]).toBe("1");
  });

  it.each([
    ["at once", (answer: boolean) => answer],
    ["later", (answer: boolean) => Promise.resolve(answer)],
  ])("leaves an entry out with false, said %s, and references to it keep their form", async (_, say) => {
    const harness = await withAccess(({ resourceType }) => say(resourceType !== "Organization"));
    await harness.emit(patientWithOrganization);
    await harness.quiet();
    const [focal, practitioner, ...others] = lastEntries(harness);
    expect(others).toEqual([]);
    expect(practitioner?.resource.resourceType).toBe("Practitioner");
    expect(focal?.resource.managingOrganization.reference).toBe("Organization/o");
    expect(focal?.resource.generalPractitioner[0]?.reference).toBe(practitioner?.fullUrl);
  });

  it.each([
    ["at once", (answer: boolean) => answer],
    ["later", (answer: boolean) => Promise.resolve(answer)],
  ])("withholds the whole delivery with false, said %s, for the focal resource", async (_, say) => {
    const { emit, run, sent, webhooks, id } = await withAccess(({ resourceType }) =>
      say(resourceType !== "Patient"),
    );
    const eventId = await emit(patientWithOrganization);
    await run(HOUR);
    expect(sent).toEqual([]);
    expect(await webhooks.deliveries.get(`${id}.${eventId}`)).toMatchObject({
      state: "withheld",
      reason: "access_denied",
      attempts: [],
    });
  });

  it("decides at each attempt: retries leave out records that a key may no longer read", async () => {
    let denied = "";
    const harness = await withAccess(({ resourceType }) => resourceType !== denied, { answer: () => 500 });
    const eventId = await harness.emit(patientWithOrganization);
    await harness.run(MINUTE);
    denied = "Practitioner";
    await harness.run(20 * MINUTE);
    denied = "Organization";
    await harness.run(30 * MINUTE);
    denied = "Patient";
    await harness.run(DAY);
    expect(harness.sent.map(({ resourceTypes }) => resourceTypes.toSorted())).toEqual([
      ["Organization", "Patient", "Practitioner"],
      ["Organization", "Patient"],
      ["Patient", "Practitioner"],
    ]);
    expect(await harness.webhooks.deliveries.get(`${harness.id}.${eventId}`)).toMatchObject({
      state: "withheld",
    });
  });

  const noDatabase = (): never => {
    throw new TypeError("no database");
  };
  const silences: readonly { name: string; silence: () => unknown; hang?: number }[] = [
    { name: "throws", silence: noDatabase },
    {
      name: "rejects",
      silence: () => Promise.reject(Object.assign(new Error("no database"), { code: "X" })),
    },
    { name: "rejects with no error", silence: () => Promise.reject("no database" as unknown as Error) },
    { name: "hangs", silence: () => forever(), hang: 5 },
    { name: "resolves to 1", silence: () => Promise.resolve(1) },
    ...[undefined, null, 0, 1, "true", {}, []].map((value) => ({
      name: `returns ${JSON.stringify(value)}`,
      silence: () => value,
    })),
  ];
  it.each(silences)(
    "that $name has nothing sent and uses up no step: it is called again at growing intervals",
    async ({ silence, hang = 0 }) => {
      const asked: number[] = [];
      let isSilent = true;
      const harness = await withAccess(
        () => {
          asked.push(harness.clock.now());
          return isSilent ? silence() : true;
        },
        { answer: () => 500 },
      );
      const eventId = await harness.emit();
      await harness.run(2 * MINUTE);
      expect(harness.sent).toEqual([]);
      const pauses = asked.slice(1).map((at, index) => (at - (asked[index] ?? 0)) / SECOND);
      expect(pauses.slice(0, 4)).toEqual([5 + hang, 10 + hang, 20 + hang, 40 + hang]);
      isSilent = false;
      await harness.run(HOUR);
      const { attempts } = await harness.webhooks.deliveries.get(`${harness.id}.${eventId}`);
      expect(attempts.map(({ step }) => step)).toEqual([0, 1, 2]);
      expect(harness.times().slice(1)).toEqual(["0:15", "0:45"]);
      expect(harness.log).toContain(
        "warn access.canRead failed or returned an invalid value; the delivery waits",
      );
      expect(harness.log.join()).not.toContain("no database");
    },
  );

  it("that never answers ends the delivery with its window, as access_unknown", async () => {
    let asked = 0;
    const { emit, run, sent, webhooks, id } = await withAccess(() => {
      asked += 1;
      throw new Error("no");
    });
    const eventId = await emit();
    const get = (): Promise<object> => webhooks.deliveries.get(`${id}.${eventId}`);
    await run(72 * HOUR - 1);
    expect(await get()).toMatchObject({ state: "pending", attempts: [] });
    await run(1);
    expect(await get()).toMatchObject({
      state: "failed",
      reason: "access_unknown",
      endedAt: new Date(START + 72 * HOUR),
    });
    expect(sent).toEqual([]);
    // A quarter of an hour apart once it has been silent for long.
    expect(asked).toBeLessThan(4 * 72 + 20);
    expect(asked).toBeGreaterThan(4 * 72 - 20);
  });

  it("that answers in the last moment of the window still has the delivery sent", async () => {
    let isSilent = true;
    const { emit, run, runUntil, times } = await withAccess(() => {
      if (isSilent) throw new Error("no");
      return true;
    });
    await emit();
    await runUntil(START + 72 * HOUR - 1);
    isSilent = false;
    await run(DAY);
    expect(times()).toEqual(["72:00"]);
  });

  it("leaves no rejection unhandled where it rejects for one entry and throws for another", async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => {
      unhandled.push(reason);
    };
    process.on("unhandledRejection", note);
    onTestFinished(() => {
      process.off("unhandledRejection", note);
    });
    const { emit, run, sent } = await withAccess(({ resourceType }) => {
      if (resourceType === "Patient") return Promise.reject(new Error("no database"));
      throw new Error("no database");
    });
    await emit(patientWithOrganization);
    await run(SECOND);
    for (let turn = 0; turn < 5; turn++) await eventLoopTurn();
    expect(unhandled).toEqual([]);
    expect(sent).toEqual([]);
  });

  it("that hangs for one endpoint holds up no other", async () => {
    const harness = await withAccess((_, { account }) => (account === "slow" ? forever() : true));
    await harness.register("https://hooks.example.com/slow", "slow");
    for (let count = 0; count < 20; count++) {
      await harness.emit({ account: "slow" });
      await harness.emit();
    }
    await harness.quiet();
    expect(harness.sent).toHaveLength(20);
  });
});
