import { webhooks } from "../../../../webhooks.js";

export async function POST(request, { params }) {
  const data = { order: (await params).id, total: (await request.json()).total };
  const { id } = await webhooks.emit({ type: "order.paid", account: "shop", data });
  return Response.json({ event: id }, { status: 202 });
}
