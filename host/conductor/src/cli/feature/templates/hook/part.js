// A hook: it receives events as they come, and reports notes that are very loud. It observes; it cannot stop what the events
// do.
import { Sink } from "conductor:feature/diagnostics@0.1.0";
import { name as deviceName } from "conductor:feature/devices@0.1.0";
import { Registrar } from "conductor:feature/hook-registrar@0.1.0";

// The number that the contract gives to a MIDI note-on.
const NOTE_ON = 2;
// From this velocity on a note is loud.
const LOUD = 120;

let log;

// What is opened here is all that the hook can ever use.
export function install(ctx) {
  Registrar.open(ctx).register("events", "normal");
  log = Sink.open(ctx);
}

export const eventHooks = {
  // Events come in batches, off the event path; `_missed` counts those that were left out before them.
  events(batch, _missed) {
    for (const event of batch.filter(({ kind, value }) => kind === NOTE_ON && value >= LOUD)) {
      // Event records hold numbers only; names are asked for.
      log.emit("info", `${deviceName(event.device) ?? ""} plays note ${event.number} at ${event.value}`);
    }
  },
};
