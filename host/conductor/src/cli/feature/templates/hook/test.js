// Run with `conductor feature test`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { install } from "../sdk/harness.js";

test("only loud notes are reported", async (t) => {
  const feature = await install(t, { grants: `observe_events = ["*"]{{others}}` });
  await feature.play("0ms pads note-on 36 127\n+10ms pads note-on 37 40\n+10ms pads note-off 36");
  const { said } = await feature.seen();
  assert.deepEqual(said.map(({ text }) => text), ["pads plays note 36 at 127"]);
});

test("other devices stay unheard without a grant", async (t) => {
  const feature = await install(t, { grants: `observe_events = ["pads"]{{others}}` });
  await feature.play("0ms faders note-on 36 127\n+10ms pads note-on 37 127");
  assert.equal((await feature.seen()).said.length, 1);
});
