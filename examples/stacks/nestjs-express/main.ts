// NestJS on Express. What is mounted before `listen` stands in front of Nest's body parser.
import { Body, Controller, HttpCode, Injectable, Module, Param, Post } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { type Access, bearer, createWebhooks } from "postbell";
import { expressAdapter } from "postbell/express";
import { memoryStorage } from "postbell/memory";
import { createReceiver } from "postbell/receiver";

const { API_KEY, WEBHOOK_SECRET, PORT = "3000" } = process.env;
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
  onApplicationBootstrap = () => this.webhooks.start();
  onApplicationShutdown = () => this.webhooks.stop().then(() => this.storage.close());
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
const app = await NestFactory.create(App);
app.enableShutdownHooks();
app.use("/api", expressAdapter(app.get(WebhookService).webhooks));
const onEvent = ({ type }: { type: string }) => console.log("received", type);
app.use("/hooks", expressAdapter(createReceiver({ body: "plain", secrets: `${WEBHOOK_SECRET}`, onEvent })));
await app.listen(PORT, "127.0.0.1");
