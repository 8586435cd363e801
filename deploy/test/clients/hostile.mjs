// Call a hostile server, HOSTILE, with the TypeScript client, and print the outcome of each of CASES.
import { ApiError, BadAnswer, Client, TransportError } from "asset-registry";

const { HOSTILE, CASES } = process.env;

/**
 * call makes the call of a case and returns what comes of it. Each case has an address of its own: Node keeps
 * connections by address, and one that a hostile answer has broken must not serve the next case.
 */
async function call({ name, call, hang }, number) {
  const server = HOSTILE.replace("127.0.0.1", `127.0.1.${number + 1}`);
  const end = new AbortController();
  const onRetry = () => call === "follow" && setTimeout(() => end.abort(), 300);
  const client = new Client(`${server}/${name}`,
    { key: "broker", attempts: call === "follow" ? 1 : 2, timeout: hang ? 1000 : 60_000, maxAnswer: 1 << 20, onRetry });
  const change = async () => (await client.change("a", { title: "x" }, { token: "token" })).data.title;
  const calls = {
    get: async () => (await client.get("a")).data.title,
    change,
    pages: async () => (await client.pages().next()).done ? "no page" : "a page",
    follow: async () => (await client.follow({ signal: end.signal }).next()).done ? "waits" : "a change",
    restored: async () => {
      await client.get("a");
      return [...new Set(await Promise.all(Array.from({ length: 8 }, change)))].join(" ");
    },
  };
  return calls[call]();
}

/** outcome returns what comes of a case. */
async function outcome(of, number) {
  try {
    return [of.name, await call(of, number)];
  } catch (error) {
    if (error instanceof ApiError) return [of.name, `refused ${error.status}`];
    if (error instanceof BadAnswer) return [of.name, "bad answer"];
    return [of.name, error instanceof TransportError ? "no answer" : String(error)];
  }
}

console.log(JSON.stringify(Object.fromEntries(await Promise.all(JSON.parse(CASES).map(outcome)))));
