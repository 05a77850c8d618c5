import { fetchAdapter } from "postbell/fetch";
import { createReceiver } from "postbell/receiver";

const onEvent = ({ type }) => console.log("received", type);
let handle; // created late: `next build` loads this module without the secret
export function POST(request) {
  const secrets = process.env.WEBHOOK_SECRET;
  handle ??= fetchAdapter(createReceiver({ body: "plain", secrets, onEvent, path: "/hooks" }));
  return handle(request);
}
