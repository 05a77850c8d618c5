/** Packages that come without types under these names. */

declare module "express4" {
  export { default } from "express";
}

declare module "koa2" {
  export { default } from "koa";
}

declare module "@koa/router" {
  import type { Middleware } from "koa";
  export default class Router {
    routes(): Middleware;
    get<State, Context>(path: string, middleware: Middleware<State, Context>): this;
    post<State, Context>(path: string, middleware: Middleware<State, Context>): this;
    use<State, Context>(middleware: Middleware<State, Context>): this;
    use<State, Context>(path: string, middleware: Middleware<State, Context>): this;
  }
}

declare module "koa-bodyparser" {
  import type { Middleware } from "koa";
  export default function bodyParser(options?: { readonly jsonLimit?: string }): Middleware;
}

/** The build of recheck that is JavaScript alone: it starts no process and downloads nothing. */
declare module "recheck/lib/browser.js" {
  export { checkSync } from "recheck";
}

declare module "s3rver" {
  export default class S3rver {
    constructor(options: object);
    run(): Promise<{ readonly port: number }>;
    close(): Promise<void>;
  }
}
