/** The part of `wpapi` that the tests use. The package has no types. */

declare module "wpapi" {
  /** Looked at, not trusted: `JSON.parse` gives the same. */
  type Answer = ReturnType<typeof JSON.parse>;

  /** A request while it is put together; awaiting it sends it as GET. */
  export interface WPRequest extends PromiseLike<Answer> {
    id(id: number): WPRequest;
    page(page: number): WPRequest;
    perPage(count: number): WPRequest;
    categories(id: number): WPRequest;
    tags(id: number): WPRequest;
    author(id: number): WPRequest;
    slug(slug: string): WPRequest;
    search(text: string): WPRequest;
    before(date: string): WPRequest;
    after(date: string): WPRequest;
    param(name: string, value: unknown): WPRequest;
    embed(): WPRequest;
    get(): Promise<Answer>;
    headers(): Promise<Record<string, string>>;
    create(fields: object): Promise<Answer>;
    update(fields: object): Promise<Answer>;
    delete(parameters?: object): Promise<Answer>;
  }

  export interface Collections {
    readonly [collection: string]: () => WPRequest;
  }

  export default class WPAPI {
    constructor(options: { endpoint: string; username?: string; password?: string });
    static discover(url: string): Promise<WPAPI>;
    auth(credentials: { username: string; password: string }): WPAPI;
    namespace(name: string): Collections;
    root(path?: string): WPRequest;
    posts(): WPRequest;
  }
}
