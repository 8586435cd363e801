export default {
  input: "openapi.json",
  output: { path: "hey-api", module: { extension: ".js" } },
  plugins: ["@hey-api/client-fetch"],
  logs: { level: "silent" },
};
