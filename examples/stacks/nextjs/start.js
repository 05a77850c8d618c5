import { webhooks } from "./webhooks.js";

await webhooks.start();
process.once("SIGTERM", () => webhooks.stop().then(() => process.exit(0)));
