/** A failing endpoint, watched through the notifiers of its host. */

import { clockTime, type Harness, type HarnessOptions, START, startHarness } from "./webhook-harness.js";

/** A health notification of the host: its kind, its time, and the start of the failure. */
export type Notification = readonly [kind: "warning" | "disabled", at: string, failingSince: string];

export interface Watched extends Harness {
  readonly told: Notification[];
  readonly id: string;
}

/**
 * A failing endpoint with a host that notes what it is told, and whose notifiers then do what
 * `reaction` does.
 */
export async function failing(
  { options, ...rest }: HarnessOptions = {},
  reaction: (count: number) => unknown = () => undefined,
): Promise<Watched> {
  const told: Notification[] = [];
  const note =
    (kind: Notification[0]) =>
    ({ failingSince }: { failingSince: Date }): unknown => {
      told.push([kind, clockTime(harness.clock.now() - START), clockTime(failingSince.getTime() - START)]);
      return reaction(told.length);
    };
  const harness = await startHarness({
    answer: () => 500,
    options: { notify: { warning: note("warning"), disabled: note("disabled") }, ...options },
    ...rest,
  });
  const { id } = await harness.register();
  return { ...harness, told, id };
}
