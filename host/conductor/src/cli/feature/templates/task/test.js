// Run with `conductor feature test`.
import { test } from "node:test";
import { install } from "../sdk/harness.js";

// The clock moves by hand: the test does not wait for 25 minutes.
test("a break is due after 25 minutes", async (t) => {
  const feature = await install(t, { grants: `background_task = true\nalert = true{{others}}` });
  const runs = ({ tasks }) => tasks.some(({ name, state }) => name === "reminder" && state === "running");
  await feature.until("the task runs", runs);
  await feature.until("the reminder comes", async () => {
    await feature.advance(25 * 60 * 1000);
    const { said } = await feature.seen();
    return said.some(({ sink, text }) => sink === "alert" && text === "Time for a break.");
  });
});
