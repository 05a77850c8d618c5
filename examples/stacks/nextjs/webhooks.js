import { bearer, createWebhooks } from "postbell";
import { memoryStorage } from "postbell/memory";

const { API_KEY } = process.env;
const authenticate = (request) => (bearer(request) === API_KEY ? { id: "key-1", account: "shop" } : null);
const create = () =>
  createWebhooks({
    storage: memoryStorage(),
    events: { "order.paid": { description: "An order was paid." } },
    access: { authenticate, canRead: () => true },
    destinations: { allowHttp: true, allowPrivateNetworks: true }, // for development
  });

// Next loads modules several times, also in production: `globalThis` holds the one service.
globalThis.webhooks ??= create();
export const webhooks = globalThis.webhooks;
