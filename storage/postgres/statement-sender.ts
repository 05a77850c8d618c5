/**
 * Sends the statements of one transaction. A statement whose result nobody reads is sent without
 * waiting for it, so on a connection with `pipeline` many statements cost one round trip.
 */

import { type PgClient, runQuery } from "./client.js";

export interface StatementSender {
  /** Sends a query. It rejects with the error of the first statement that failed. */
  readonly send: <R>(text: string, values: unknown[]) => Promise<readonly R[]>;
  /** Sends a statement. If it fails, later calls reject. */
  readonly sendUnread: (text: string, values: unknown[]) => void;
  /** Sends one or several statements without values, in the same way. */
  readonly sendPlain: (text: string) => void;
  /** Sends a statement without values, and waits for it whatever became of those before. */
  readonly sendLast: (text: string) => Promise<void>;
  /** Resolves when all statements succeeded; rejects with the error of the first that failed. */
  readonly settled: () => Promise<void>;
}

/** `nameOf`: returns the name under which the server keeps the plan of a text, if it may. */
export function createStatementSender(
  client: PgClient,
  nameOf: (text: string) => string | undefined,
): StatementSender {
  /** The last statement: those of a connection without `pipeline` are sent one after another. */
  let last: Promise<unknown> = Promise.resolve();
  let failure: { readonly error: unknown } | undefined;

  const start = <R>(run: () => PromiseLike<R>): Promise<R> => {
    const own = client.pipeline === true ? Promise.resolve(run()) : last.then(run);
    last = own.catch((error: unknown) => {
      // Statements after it fail too, because the transaction is aborted.
      failure ??= { error };
    });
    return own;
  };
  const settled = async (): Promise<void> => {
    await last;
    if (failure !== undefined) throw failure.error;
  };

  return {
    settled,
    async send(text, values) {
      try {
        return await start(() => runQuery(client, text, values, nameOf(text)));
      } catch (error) {
        throw failure?.error ?? error;
      }
    },
    sendUnread(text, values) {
      start(() => runQuery(client, text, values, nameOf(text))).catch(() => {});
    },
    async sendLast(text) {
      await start(() => client.query(text));
    },
    sendPlain(text) {
      start(() => client.query(text)).catch(() => {});
    },
  };
}
