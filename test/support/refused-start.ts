/** Starts a service whose storage refuses it, and servers that stand in for one. */

import type { Server, Socket } from "node:net";
import { onTestFinished } from "vitest";
import { type ContentStorage, createContent } from "../../src/content/index.js";
import { createWebhooks, isPostbellError, type Storage } from "../../src/index.js";
import { recordingLogger } from "./registration-api.js";

/** Resolves with the service, the error of its start, and its log. Rejects if it starts. */
export async function startRefused(kind: "webhooks" | "content", storage: Storage & ContentStorage) {
  const { logger, log } = recordingLogger();
  const service =
    kind === "webhooks"
      ? createWebhooks({ storage, logger, access: { authenticate: () => null, canRead: () => true } })
      : createContent({
          ...{ storage, logger, users: [], authenticate: () => null, awaitStorage: true },
          site: { name: "Example", url: "https://www.example.org" },
        });
  const refused: unknown = await service.start().then(
    () => new Error("It has started."),
    (error: unknown) => error,
  );
  if (!isPostbellError(refused)) throw refused;
  const listLines = () => log.filter(({ level }) => level === "error" || level === "warn");
  return { service, refused, log, listLines };
}

/** Listens until the test ends. Resolves with the port. */
export async function listenInTest(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as { port: number }).port;
}
