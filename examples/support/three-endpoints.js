// The other side of examples/portal.js: the endpoints of three subscribers, two need repair, and
// their own page.
import { nodeAdapter } from "postbell/node";
import { createReceiver } from "postbell/receiver";
import { startSubscriber } from "./subscriber.js";

/** `clock` is the service's, by whose time it signs. */
export async function startEndpoints({ clock, onArrival }) {
  const server = await startSubscriber();
  const receivers = new Map();
  const arrivals = [];
  let labIsUp = true;
  const fail = (response, status, text) => {
    response.writeHead(status, { "content-type": "text/plain" }).end(text);
  };
  server.answer((request, response) => {
    if (request.url === "/lab" && !labIsUp) fail(response, 500, "The database of the lab is full.");
    else if (receivers.has(request.url)) receivers.get(request.url)(request, response);
    else fail(response, 404, "Nothing is here any more: notifications go to /archive now.");
  });

  return {
    ca: server.ca,
    url: (path) => new URL(path, server.url).href,
    /** Notifications to `path` that are signed with the secret count as arrived, once. */
    receive(path, secrets) {
      const onEvent = ({ id, event }) => {
        const arrival = { at: new Date(clock.now()), path, id, type: event["hub.event"] };
        arrivals.unshift(arrival);
        onArrival(arrival);
      };
      receivers.set(path, nodeAdapter(createReceiver({ secrets, onEvent, path, clock })));
    },
    arrivals: () => [...arrivals],
    breakLab() {
      labIsUp = false;
    },
    repairLab() {
      labIsUp = true;
    },
    page: () => `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>The subscribers' side</title>
<h1>The subscribers' side</h1>
<p>Here you are the owner of the endpoints. <a href="/portal/">The portal</a> shows what the sender knows of them.</p>
<form method="post" action="/endpoints/repair">
  <p>The lab: ${labIsUp ? "answers." : "fails. <button>Empty the database of the lab</button>"}</p>
</form>
<form method="post" action="/endpoints/emit"><p><button>Change a patient's record (emits an event)</button></p></form>
<h2>What has arrived, the newest first</h2>
<ol reversed>${arrivals.map(({ at, path, type, id }) => `<li>${at.toISOString()} <b>${path}</b> ${type} <code>${id}</code></li>`).join("\n")}</ol>
</html>`,
    close: () => server.close(),
  };
}
