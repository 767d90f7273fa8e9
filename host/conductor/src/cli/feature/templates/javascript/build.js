// Makes the component. `conductor feature build` runs this (`npm run feature`), and tells where the
// contract is, with the world `feature` made from feature.toml, and where the component goes.
import { componentize } from "@bytecodealliance/componentize-js";
import { writeFile } from "node:fs/promises";

const { component } = await componentize({
  sourcePath: "feature.js",
  witPath: process.env.CONDUCTOR_WIT,
  worldName: "feature",
  // A feature gets the contract's services and nothing else: without these the engine imports no WASI.
  disableFeatures: ["random", "stdio", "clocks", "http", "fetch-event"],
});
await writeFile(process.env.CONDUCTOR_OUT, component);
