// The scenario with @hey-api/openapi-ts.
import { createClient } from "./hey-api/client/index.js";
import { addDocument, changeAsset, createAsset, createTransfer, listAssets, listDocuments, takeOver } from
  "./hey-api/sdk.gen.js";
import { asset, document, key, must, registry, report } from "./scenario.js";

const broker = createClient({ baseUrl: registry, headers: key("broker") });
const other = createClient({ baseUrl: registry, headers: key("broker3") });

const made = await createAsset({ client: broker, body: { data: asset() } });
const { data } = must(made.data);
const access = must(must(made.data).access); // a repeat has none
const path = { id: data.id };
const token = { "X-Access-Token": access.token };
const headers = { ...token, "If-Match": must(made.response?.headers.get("ETag")) };
const published = await changeAsset({ client: broker, path, headers, body: { data: { status: "pending" } } });
const stale = await changeAsset({ client: broker, path, headers, body: { data: { description: "none" } } });
await addDocument({ client: broker, path, headers: token, body: { data: document } });
const documents = await listDocuments({ client: broker, path });
const transfer = must((await createTransfer({ client: other, body: { data: {} } })).data);
const owned = await takeOver(
  { client: other, path, body: { data: { id: transfer.data.id, transfer: access.transfer } } });
const page = await listAssets({ client: broker, query: { limit: 1000 } });
report({
  Created: data.status, Stale: must(stale.response).status, Published: must(published.data).data.status,
  Documents: must(documents.data).data.length, Owner: must(owned.data).data.owner,
  Quantity: String(must(data.items)[0]?.quantity), Followed: must(page.data).data.some((entry) => entry.id === data.id),
});
