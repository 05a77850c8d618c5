/** The compiled page: see scripts/portal-app.js. */
declare module "virtual:portal-app" {
  export const script: string;
  export const style: string;
}
