export default {
  registry: {
    input: { target: "openapi.json" },
    output: { mode: "single", target: "orval/client.ts", client: "fetch", baseUrl: { runtime: "process.env.REGISTRY" } },
  },
};
