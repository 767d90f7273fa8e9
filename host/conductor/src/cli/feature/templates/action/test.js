// Run with `conductor feature test`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { install } from "../sdk/harness.js";

test("a pad sends text", async (t) => {
  const config = `
    [[global_mappings]]
    trigger = { type = "Note", note = 36 }
    action = { type = "{{Type}}", target = "127.0.0.1:9000", text = "pad" }
  `;
  const feature = await install(t, { config, grants: `udp = ["127.0.0.1:9000"]{{others}}` });
  await feature.play("0ms pads note-on 36 100\n+10ms pads note-on 37 100");
  const { sent } = await feature.seen();
  assert.deepEqual(sent, [{ to: "127.0.0.1:9000", bytes: [...Buffer.from("pad 100\n")] }]);
});

// What is not granted is refused when the mapping is read, not when the pad is hit.
test("a target without a grant is refused", async (t) => {
  const feature = await install(t, { grants: `udp = ["127.0.0.1:9000"]{{others}}` });
  await assert.rejects(feature.prepare("{{Type}}", { target: "192.0.2.1:9000" }), /not granted/);
});
