// NestJS on Fastify. The plugin starts and stops the service with the server.
import { Body, Controller, HttpCode, Injectable, Module, Param, Post } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { FastifyAdapter, type NestFastifyApplication } from "@nestjs/platform-fastify";
import { type Access, bearer, createWebhooks } from "postbell";
import { fastifyAdapter } from "postbell/fastify";
import { memoryStorage } from "postbell/memory";
import { createReceiver } from "postbell/receiver";
const { API_KEY, WEBHOOK_SECRET, PORT = 3000 } = process.env;
const authenticate: Access["authenticate"] = (request) =>
  (bearer(request) === API_KEY ? { id: "key-1", account: "shop" } : null);
@Injectable()
class WebhookService {
  private readonly storage = memoryStorage();
  readonly webhooks = createWebhooks({
    storage: this.storage,
    events: { "order.paid": { description: "An order was paid." } },
    access: { authenticate, canRead: () => true },
    destinations: { allowHttp: true, allowPrivateNetworks: true }, // for development
  });
  onApplicationShutdown = () => this.storage.close();
}

@Controller("orders")
class Orders {
  constructor(private readonly service: WebhookService) {}
  @Post(":id/paid") @HttpCode(202) async paid(@Param("id") order: string, @Body() body: { total: number }) {
    const data = { order, total: body.total };
    const { id } = await this.service.webhooks.emit({ type: "order.paid", account: "shop", data });
    return { event: id };
  }
}

@Module({ controllers: [Orders], providers: [WebhookService] }) class App {}
const app = await NestFactory.create<NestFastifyApplication>(App, new FastifyAdapter());
app.enableShutdownHooks();
await app.register(fastifyAdapter, { service: app.get(WebhookService).webhooks, prefix: "/api" });
const onEvent = ({ type }: { type: string }) => console.log("received", type);
const receiver = createReceiver({ body: "plain", secrets: `${WEBHOOK_SECRET}`, onEvent });
await app.register(fastifyAdapter, { service: receiver, prefix: "/hooks" });
await app.listen(PORT);
