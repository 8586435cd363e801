// Follow the feed by streams with the TypeScript client, up to the title LAST, and report each title.
import { Client } from "asset-registry";

const { REGISTRY, CONTROL, LAST } = process.env;
for await (const { data } of new Client(REGISTRY).follow({ live: true, fields: ["title"] })) {
  await fetch(`${CONTROL}/step`, { method: "POST", body: JSON.stringify({ Step: "live", Got: data.title }) });
  if (data.title === LAST) break;
}
