// Run with `conductor feature test`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { install } from "../sdk/harness.js";

test("middle C is C4", async (t) => {
  const feature = await install(t, { grants: `{{others}}` });
  assert.deepEqual(await feature.call("{{snake}}", { note: 60 }), { name: "C4", frequency: 261.63 });
  assert.equal((await feature.call("{{snake}}", { note: 69 })).frequency, 440);
});

test("a note beyond MIDI is refused in words", async (t) => {
  const feature = await install(t, { grants: `{{others}}` });
  await assert.rejects(feature.call("{{snake}}", { note: 200 }), /0 to 127/);
});
