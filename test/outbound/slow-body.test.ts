/** A body that is written in parts: to a socket, and through the client. */

import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.js";
import { createOutboundClient } from "../../src/outbound/client.js";
import { writeSlowly } from "../../src/outbound/slow-body.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { reply, startEndpoint } from "../support/https-endpoint.js";

function openSocket() {
  const written: string[] = [];
  const socket = {
    destroyed: false,
    write: (chunk: string | Uint8Array) => {
      written.push(Buffer.from(chunk as Uint8Array).toString());
      return true;
    },
  };
  return { socket, written };
}

describe("a slow body", () => {
  it("is written in eight parts, with a pause between two of them", async () => {
    const clock = manualClock(0);
    const { socket, written } = openSocket();
    writeSlowly(socket, { head: "H", body: Buffer.from("abcdefghijklmnop"), pauseMs: 100 }, clock);
    expect(written).toEqual(["H", "ab"]);
    await clock.advance(99);
    expect(written).toEqual(["H", "ab"]);
    await clock.advance(1);
    expect(written).toEqual(["H", "ab", "cd"]);
    await clock.advance(600);
    expect(written.join("")).toBe("Habcdefghijklmnop");
    expect(written).toHaveLength(9);
    expect(clock.nextTimerAt()).toBeUndefined();
  });

  it("ends with its connection", async () => {
    const clock = manualClock(0);
    const { socket, written } = openSocket();
    writeSlowly(socket, { head: "H", body: Buffer.from("abcdefghijklmnop"), pauseMs: 100 }, clock);
    socket.destroyed = true;
    await clock.advance(1_000);
    expect(written).toEqual(["H", "ab"]);
    expect(clock.nextTimerAt()).toBeUndefined();
  });

  it("arrives whole, and its connection is not used again", async () => {
    const endpoint = await startEndpoint();
    const client = createOutboundClient({
      clock: systemClock,
      policy: { allowHttp: true, allowPrivateNetworks: true },
    });
    const send = (bodyPauseMs?: number) =>
      client.send({
        url: `http://127.0.0.1:${endpoint.port}/`,
        method: "POST",
        headers: {},
        body: Buffer.from("abcdefghijklmnop"),
        deadlineMs: 15_000,
        maxBodyBytes: 1024,
        bodyPauseMs,
      });
    try {
      expect(await send(1)).toMatchObject({ kind: "response", status: 204 });
      expect(await send()).toMatchObject({ kind: "response", status: 204 });
      expect(await send(1)).toMatchObject({ kind: "response", status: 204 });
      expect(endpoint.requests.map(({ body }) => body.toString())).toEqual(
        Array.from({ length: 3 }, () => "abcdefghijklmnop"),
      );
      expect(endpoint.requests.map(({ connection }) => connection)).toEqual([1, 2, 2]);
    } finally {
      await client.close();
      await endpoint.close();
    }
  });

  it("ends with the response if the endpoint refuses it at its first part", async () => {
    const endpoint = await startEndpoint({ onConnection: (socket) => void socket.write(reply(413)) });
    const client = createOutboundClient({
      clock: systemClock,
      policy: { allowHttp: true, allowPrivateNetworks: true },
    });
    const body = Buffer.from("abcdefghijklmnop");
    const request = { url: `http://127.0.0.1:${endpoint.port}/`, method: "POST", headers: {}, body } as const;
    try {
      const result = await client.send({
        ...request,
        deadlineMs: 15_000,
        maxBodyBytes: 9,
        bodyPauseMs: 10_000,
      });
      expect(result).toMatchObject({ kind: "response", status: 413 });
    } finally {
      await client.close();
      await endpoint.close();
    }
  });
});
