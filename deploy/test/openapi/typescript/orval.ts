// The scenario with orval and its client for fetch.
import { addDocument, changeAsset, createAsset, createTransfer, listAssets, listDocuments, takeOver } from
  "./orval/client.js";
import { asset, document, key, must, report } from "./scenario.js";

const broker = { headers: { ...key("broker"), "Content-Type": "application/json" } };
const other = { headers: { ...key("broker3"), "Content-Type": "application/json" } };

const made = await createAsset({ data: asset() }, undefined, broker);
if (made.status !== 201) throw new Error(`got ${made.status}, want 201`);
const { data } = made.data;
const access = must(made.data.access); // a repeat has none
const token = { "X-Access-Token": access.token };
const tagged = { ...token, "If-Match": made.headers.get("ETag") ?? "" };
const with_ = (more: Record<string, string>) => ({ headers: { ...broker.headers, ...more } });
const published = await changeAsset(data.id, { data: { status: "pending" } }, undefined, with_(tagged));
const stale = await changeAsset(data.id, { data: { description: "none" } }, undefined, with_(tagged));
await addDocument(data.id, { data: document }, undefined, with_(token));
const documents = await listDocuments(data.id);
const transfer = await createTransfer({ data: {} }, undefined, other);
if (published.status !== 200 || documents.status !== 200 || transfer.status !== 201) {
  throw new Error(`got ${published.status}, ${documents.status} and ${transfer.status}, want 200, 200 and 201`);
}
const owned = await takeOver(data.id, { data: { id: transfer.data.data.id, transfer: access.transfer } }, undefined, other);
const page = await listAssets({ limit: 1000 });
if (owned.status !== 200 || page.status !== 200) throw new Error(`got ${owned.status} and ${page.status}, want 200`);
if (typeof page.data === "string" || typeof documents.data === "string") throw new Error("got text, want an object");
report({
  Created: data.status, Stale: stale.status, Published: published.data.data.status,
  Documents: documents.data.data.length, Owner: owned.data.data.owner,
  Quantity: String(data.items?.[0]?.quantity), Followed: page.data.data.some((entry) => entry.id === data.id),
});
