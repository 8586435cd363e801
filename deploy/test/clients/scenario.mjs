// The scenario of package clients with the TypeScript client, for Node and for a page.
import { ApiError, Client, Conflict, Decimal, Forbidden, InvalidRequest, NotFound, OffsetGone,
  PreconditionFailed } from "asset-registry";

/**
 * run runs all steps. registry is the registry's address, control is the test's address. cookies tells whether the
 * platform lets a program send cookies.
 */
export async function run(registry, control, cookies) {
  const refusals = []; // the status of each failed attempt, 0 without an answer
  const onRetry = (error) => refusals.push(error.status ?? 0);
  const client = (key) => new Client(registry, { key, attempts: 20, onRetry });
  const ask = async (path, body) => {
    const answer = await fetch(control + path, { method: "POST", body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path}: got ${answer.status}, want 200`);
  };
  const stage = { registry, cookies, refusals, client, ask, report: (name, got) => ask("/step", { Step: name, Got: got }),
    broker: client("broker"), broker3: client("broker3"), administrator: client("administrator"), reader: client("") };
  const [id, token] = await life(stage);
  await backToWork(stage);
  await webhooks(stage);
  await faults(stage, id, token);
  const position = await follow(stage);
  await stage.report("start over", await startOver(stage, "no offset"));
  if (cookies) await otherData(stage, position, id, token);
}

function asset(number) {
  return {
    assetType: "bounce", title: `Asset ${number}`, description: "one entrance",
    items: [{
      description: "Hall", classification: { scheme: "CAV-PS", id: "04121000-2", description: "Hall" },
      unit: { code: "MTK" }, quantity: new Decimal("240.50010"), address: { countryName: "Україна" },
      location: { latitude: new Decimal("50.4501000"), longitude: "30.5234" },
      registrationDetails: { status: "unknown" },
    }],
    decisions: [{ decisionDate: "2026-11-20T12:00:00+02:00", decisionID: "1637-10" }],
    assetCustodian: {
      name: "Fund", identifier: { scheme: "UA-EDR", id: 32945 }, address: { countryName: "Україна" },
      contactPoint: { name: "Registrar", telephone: "+380440000000" },
    },
  };
}

/** publish creates an asset and publishes it. */
async function publish({ broker }, number) {
  const made = await broker.create(asset(number));
  await broker.change(made.data.id, { status: "pending" }, { token: made.token });
  return made;
}

/** refused returns the error of a promise. It throws if the promise has no error, or one of another kind. */
async function refused(kind, promise) {
  const outcome = await promise.then(() => undefined, (error) => error);
  if (!(outcome instanceof kind)) throw new Error(`got ${outcome}, want ${kind.name}`);
  return outcome;
}

/** life creates, publishes, changes and hands over an asset. It returns the id and the owner token. */
async function life({ broker, broker3, reader, report, cookies }) {
  const made = await broker.create(asset(1));
  const { id } = made.data;
  const [item] = made.data.items;
  await report("create", { status: made.data.status, quantity: String(item.quantity),
    latitude: String(item.location.latitude), id: String(made.data.assetCustodian.identifier.id) });
  const wrong = { assetType: "bounce", items: [{ ...item, quantity: "many" }], decisions: [] };
  const { errors } = await refused(InvalidRequest, broker.create(wrong));
  await report("refuse", errors.map((e) => `${e.location}/${e.name}`).sort());
  const published = await broker.change(id, { status: "pending" }, { token: made.token, ifMatch: made.etag });
  await report("publish", published.data.status);
  const proof = await reader.proof(id);
  const draft = await refused(NotFound, reader.proof(id, 1));
  await report("prove", { revision: proof.leaf.revision, kind: proof.leaf.kind,
    quantity: String(proof.asset.items[0].quantity), first: draft.status });
  const tagged = { token: made.token, ifMatch: published.etag };
  const changed = await broker.change(id, { description: "two entrances" }, tagged);
  const stale = await refused(PreconditionFailed, broker.change(id, { description: "none" }, tagged));
  await report("change with a tag", { description: changed.data.description, stale: stale.status });
  await broker.documents.add(id, { documentType: "illustration", title: "Plan", url: "https://example.com/plan",
    format: "image/png" }, { token: made.token });
  const part = await broker.items.change(id, item.id, { quantity: new Decimal("7.25") }, { token: made.token });
  await report("parts", { documents: (await reader.documents.list(id)).length, quantity: String(part.data.quantity) });
  const plan = new Blob([`%PDF-1.4\n${"x".repeat(1_000_000)}`], { type: "application/pdf" }); // Node 18 has no File
  Object.assign(plan, { name: "plan.pdf" });
  const upload = broker.documents.upload(id, plan, { documentType: "notice" }, { token: made.token });
  if (cookies) { // a page of another origin must not send files
    const { data } = await upload;
    await report("upload", { title: data.title, format: data.format, hash: data.hash });
  } else {
    await report("upload", { refused: (await refused(Forbidden, upload)).status });
  }
  const transfer = await broker3.makeTransfer();
  const { owner } = (await broker3.takeOver(id, transfer, made.transfer)).data;
  const old = await refused(Forbidden, broker.change(id, { description: "none" }, { token: made.token }));
  const taken = await broker3.change(id, { description: "three entrances" }, { token: transfer.token });
  await report("hand over", { owner, "old token": old.status, "new token": taken.data.description });
  return [id, transfer.token];
}

/** backToWork finds an asset whose answer was lost, gets new tokens for it and removes it. */
async function backToWork({ broker, administrator, reader, report }) {
  const reference = "lot-9";
  const own = async (fields) => {
    const found = [];
    for await (const one of broker.ownAssets({ status: "draft", fields, limit: 1 })) found.push(one);
    return found;
  };
  const made = await broker.create(asset(9), { reference });
  const { id } = made.data;
  const again = await broker.create(asset(9), { reference });
  const other = await refused(Conflict, broker.create(asset(10), { reference }));
  const listed = (await own(["reference"])).map((one) => one.reference);
  const recovered = await administrator.recover(id, "the answer was lost");
  const old = await refused(Forbidden, broker.change(id, { description: "none" }, { token: made.token }));
  const { token, etag: ifMatch } = JSON.parse(JSON.stringify(recovered)); // as a program stores it
  const found = await broker.change(id, { description: "found" }, { token, ifMatch });
  await broker.remove(id, { token });
  const removed = await refused(NotFound, reader.get(id));
  const left = (await own([])).length;
  const repeat = await refused(ApiError, broker.create(asset(9), { reference }));
  await report("back to work", { again: again.data.id === id, tokens: again.token + again.transfer, other: other.status,
    named: other.errors[0].description.includes(id), own: listed, "old token": old.status,
    "new token": found.data.description, removed: removed.status, left, repeat: repeat.status });
}

/** webhooks creates, changes and removes a webhook, to which nothing is sent. */
async function webhooks({ broker, report }) {
  const made = await broker.webhooks.create({ url: "https://receiver.example/", state: "disabled" });
  const { id } = made.data;
  await broker.webhooks.change(id, { url: "https://receiver.example/new" });
  const rotated = await broker.webhooks.rotate(id);
  const { state, reason, url, offset } = await broker.webhooks.get(id);
  let listed = 0;
  for await (const webhook of broker.webhooks.list()) if (webhook.id === id) listed++;
  const replayed = await broker.webhooks.replay(id, offset);
  await broker.webhooks.remove(id);
  const gone = await refused(NotFound, broker.webhooks.get(id));
  await report("webhooks", { state, reason, url, listed, replayed: replayed.state, removed: gone.status,
    rotated: rotated.secret.startsWith("whsec_") && rotated.secret !== made.secret });
}

/** faults meets refusals, lost answers and a rate limit. */
async function faults(stage, id, token) {
  const { broker, broker3, reader, refusals, ask, report } = stage;
  refusals.length = 0;
  await ask("/fault", { Status: 429, Times: 2 });
  const { title } = (await reader.get(id)).data;
  await report("429", { title, refusals });
  refusals.length = 0;
  const { etag: ifMatch } = await reader.get(id);
  await ask("/fault", { Status: 503, Times: 2 });
  const { description } = (await broker3.change(id, { description: "four entrances" }, { token, ifMatch })).data;
  await report("503", { description, refusals });
  refusals.length = 0;
  await ask("/fault", { Status: 503, Times: 1, After: true });
  await ask("/fault", { Status: 0, Times: 1, After: true });
  await publish(stage, 2);
  const titles = [];
  for await (const page of reader.pages({ limit: 1, fields: ["title"] })) {
    titles.push(...page.entries.map((entry) => entry.title));
  }
  await report("lost answers", { refusals, published: titles });
  refusals.length = 0;
  let pages = 0;
  for (let i = 0; i < 4; i++) for await (const _ of broker.pages({ limit: 1 })) pages++;
  await report("rate limit", { pages, refused: refusals.includes(429) });
}

/** follow follows the feed through a restart of the registry, and resumes it. It returns a saved position. */
async function follow(stage) {
  const { client, reader, refusals, ask, report } = stage;
  refusals.length = 0;
  const end = new AbortController();
  const seen = [];
  let wake = () => undefined;
  const watching = (async () => {
    const changes = client("").follow({ limit: 2, fields: ["title"], interval: 100, signal: end.signal });
    for await (const change of changes) {
      seen.push(change);
      wake();
    }
  })();
  const number = async (count) => {
    while (seen.length < count) await Promise.race([watching, new Promise((resolve) => (wake = resolve))]);
  };
  await publish(stage, 3);
  await publish(stage, 4);
  await number(4);
  await ask("/restart", {});
  await publish(stage, 5);
  await publish(stage, 6);
  await number(6);
  end.abort();
  await watching;
  const titles = seen.map((change) => change.data.title);
  await report("follow through a restart", { seen: titles, interrupted: refusals.includes(0) });
  const resumed = [];
  for await (const change of reader.follow({ position: seen[3].position, limit: 1, fields: ["title"] })) {
    if (resumed.push(change.data.title) === 2) break;
  }
  await report("resume", resumed);
  return seen[3].position;
}

/** startOver follows from a position that the registry does not know. */
async function startOver({ client }, position) {
  const unheard = await refused(OffsetGone, client("").follow({ position }).next());
  let heard = 0;
  const onStartOver = () => { heard++; };
  const first = await client("").follow({ position, fields: ["title"], onStartOver }).next();
  return { unheard: unheard.status, heard, first: first.value.data.title };
}

/** otherData meets a registry with other data than the client's cookie names. */
async function otherData(stage, position, id, token) {
  const got = await startOver(stage, `${position.split(";")[0]};gone`);
  const stale = stage.client("broker3");
  await stage.ask("/cookie", { Value: "gone" });
  await stale.me();
  const changed = await stale.change(id, { description: "five entrances" }, { token });
  await stage.report("other data", { ...got, write: changed.data.description });
}
