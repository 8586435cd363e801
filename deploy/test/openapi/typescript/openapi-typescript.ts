// The scenario with openapi-typescript and openapi-fetch.
import createClient from "openapi-fetch";
import type { paths } from "./openapi-typescript/schema.js";
import { asset, document, key, must, registry, report } from "./scenario.js";

const broker = createClient<paths>({ baseUrl: registry, headers: key("broker") });
const other = createClient<paths>({ baseUrl: registry, headers: key("broker3") });

const made = await broker.POST("/assets", { body: { data: asset() } });
const { data } = must(made.data);
const access = must(must(made.data).access); // a repeat has none
const params = {
  path: { id: data.id },
  header: { "X-Access-Token": access.token, "If-Match": must(made.response.headers.get("ETag")) },
};
const published = await broker.PATCH("/assets/{id}", { params, body: { data: { status: "pending" } } });
const stale = await broker.PATCH("/assets/{id}", { params, body: { data: { description: "none" } } });
const { "X-Access-Token": token } = params.header;
await broker.POST("/assets/{id}/documents",
  { params: { path: params.path, header: { "X-Access-Token": token } }, body: { data: document } });
const documents = await broker.GET("/assets/{id}/documents", { params: { path: params.path } });
const transfer = must((await other.POST("/transfers", { body: { data: {} } })).data);
const owned = await other.POST("/assets/{id}/ownership",
  { params: { path: params.path }, body: { data: { id: transfer.data.id, transfer: access.transfer } } });
const page = await broker.GET("/assets", { params: { query: { limit: 1000 } } });
report({
  Created: data.status, Stale: stale.response.status, Published: must(published.data).data.status,
  Documents: must(documents.data).data.length, Owner: must(owned.data).data.owner,
  Quantity: String(must(data.items)[0]?.quantity), Followed: must(page.data).data.some((entry) => entry.id === data.id),
});
