/** Modules that scripts/portal-app.js makes while it builds the page. */

/** The compiled page. */
declare module "virtual:portal-app" {
  export const script: string;
  export const style: string;
}

/** The programs of docs/guides/subscribe.md that verify a signature. */
declare module "virtual:verification-snippets" {
  export const snippets: { language: string; code: string }[];
}

/** A style sheet of the page. They are joined in the order of their imports. */
declare module "*.css";
