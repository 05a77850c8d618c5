/** Lists that are read page by page. */

/** A page of a list. */
export interface ListPage<T> {
  readonly items: readonly T[];
  /** The `cursor` of the next page, `null` on the last. */
  readonly next: string | null;
}

/**
 * A list, which is read when it is awaited or iterated over. `await` gives the page at `cursor`.
 * `for await` gives the items of this page and of all after it: it reads a page of `limit` items
 * once they are needed, and forgets the one before.
 *
 * @example
 * const { items, next } = await webhooks.deliveries.list({ webhookId });
 * for await (const { state } of webhooks.deliveries.list({ webhookId })) console.log(state);
 */
export interface List<T> extends PromiseLike<ListPage<T>>, AsyncIterable<T, undefined> {}

/** The list that `readPage` reads. A page may be empty and still have a next one. */
export class PagedList<T> implements List<T> {
  #readPage: (cursor: string | undefined) => Promise<ListPage<T>>;
  #cursor: string | undefined;
  #page: Promise<ListPage<T>> | undefined;

  constructor(cursor: string | undefined, readPage: (cursor: string | undefined) => Promise<ListPage<T>>) {
    this.#cursor = cursor;
    this.#readPage = readPage;
  }

  // biome-ignore lint/suspicious/noThenProperty: a list is awaited for its first page.
  then<R = ListPage<T>, E = never>(
    onPage?: ((page: ListPage<T>) => R | PromiseLike<R>) | null,
    onError?: ((error: unknown) => E | PromiseLike<E>) | null,
  ): Promise<R | E> {
    this.#page ??= this.#readPage(this.#cursor);
    return this.#page.then(onPage, onError);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, undefined> {
    let cursor = this.#cursor;
    do {
      const { items, next } = await this.#readPage(cursor);
      yield* items;
      cursor = next ?? undefined;
    } while (cursor !== undefined);
    return undefined;
  }
}
