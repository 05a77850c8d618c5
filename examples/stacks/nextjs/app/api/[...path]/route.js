import { fetchAdapter } from "postbell/fetch";
import { webhooks } from "../../../webhooks.js";

const handle = fetchAdapter(webhooks, { prefix: "/api" });

export { handle as DELETE, handle as GET, handle as POST, handle as PUT };
