/** Runs the passes of the worker: one after another, when one is requested or a time has come. */

import { AsyncResource } from "node:async_hooks";
import type { Clock, Timer } from "../../core/clock.js";
import { storageRetryDelayMs } from "../../core/storage-circuit.js";
import type { WebhookStore } from "../store.js";

/** The state of the passes and of the storage, for health checks. */
export interface LoopStats {
  isRunning: boolean;
  /** Milliseconds since the current pass began or should have begun: near 0 while all is well. */
  overdueMs: number;
  /** True if the next pass waits for a free slot. `overdueMs` then counts from the last pass. */
  isFull: boolean;
  /** Milliseconds since every claim and settlement has failed; 0 if the last one succeeded. */
  storageDownMs: number;
}

export class Passes {
  #clock: Clock;
  #store: WebhookStore;
  #pass: () => Promise<void>;
  #isRunning = false;
  #isRequested = false;
  #passing: Promise<void> | undefined;
  #count = 0;
  /** When the last pass began or ended, in monotonic time. */
  #passedAt = 0;
  #failures = 0;
  #lastError: Error | undefined;
  #timer: Timer | undefined;
  #sleepsUntil: number | undefined;
  #context = new AsyncResource("DeliveryWorker");

  /** @param pass a pass that rejects is repeated, with longer and longer pauses. */
  constructor(clock: Clock, store: WebhookStore, pass: () => Promise<void>) {
    this.#clock = clock;
    this.#store = store;
    this.#pass = pass;
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  start(): void {
    this.#isRunning = true;
    this.#context = new AsyncResource("DeliveryWorker");
    this.#passedAt = this.#clock.monotonic();
    this.request();
  }

  /** No pass begins after this. Resolves when the current one has ended. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#clock.clearTimeout(this.#timer);
    this.#sleepsUntil = undefined;
    await this.#passing;
  }

  /** Requests a pass. Requests during a pass lead to one more. */
  request(): void {
    this.#isRequested = true;
    if (this.#isRunning) this.#passing ??= this.inContext(() => this.#run());
  }

  /** Requests a pass at a time of the storage, now if it has passed. Only the earliest counts. */
  requestAt(at: number): void {
    if (at <= this.#store.now()) {
      this.request();
      return;
    }
    if (!this.#isRunning || (this.#sleepsUntil !== undefined && this.#sleepsUntil <= at)) return;
    this.#clock.clearTimeout(this.#timer);
    this.#sleepsUntil = at;
    const onTime = (): void => {
      this.#sleepsUntil = undefined;
      this.request();
    };
    this.#timer = this.#clock.setTimeout(onTime, at - this.#store.now());
  }

  /**
   * Does work of the worker in the async context of `start`, as passes are done. What the host
   * keeps there, such as its tenant, must not depend on the request that caused the work.
   */
  inContext<T>(work: () => T): T {
    return this.#context.runInAsyncScope(work);
  }

  /**
   * Requests a pass and waits until none is running or requested. Resolves with `true` if one began
   * meanwhile. Rejects with the error of the last pass.
   */
  async finish(): Promise<boolean> {
    const before = this.#count;
    this.request();
    await this.#passing;
    if (this.#lastError !== undefined) throw this.#lastError;
    return this.#passing === undefined && this.#count > before;
  }

  stats(): Omit<LoopStats, "storageDownMs"> {
    const until = this.#passing === undefined ? this.#sleepsUntil : undefined;
    const sinceMs = this.#clock.monotonic() - this.#passedAt;
    return {
      isRunning: this.#isRunning,
      overdueMs: until === undefined ? sinceMs : Math.max(0, this.#store.now() - until),
      isFull: this.#passing === undefined && until === undefined,
    };
  }

  async #run(): Promise<void> {
    this.#passedAt = this.#clock.monotonic();
    while (this.#isRequested && this.#isRunning) {
      // In a later turn of the event loop: one claim then fills all slots that this turn frees.
      await new Promise((resolve) => setImmediate(resolve));
      this.#isRequested = false;
      if (!this.#isRunning) break;
      this.#count += 1;
      try {
        await this.#pass();
        this.#failures = 0;
        this.#lastError = undefined;
      } catch (error) {
        this.#lastError = error instanceof Error ? error : new Error(String(error));
        this.requestAt(this.#store.now() + storageRetryDelayMs(this.#failures++));
      }
      this.#passedAt = this.#clock.monotonic();
    }
    this.#passing = undefined;
  }
}
