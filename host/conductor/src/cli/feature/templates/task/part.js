// A background task: every 25 minutes it says that it is time for a break.
import { Sink } from "conductor:feature/alerts@0.1.0";
import { Registrar } from "conductor:feature/task-registrar@0.1.0";

// In milliseconds.
const BETWEEN = 25 * 60 * 1000;

let alerts;

// A task has an instance of its own. What is opened here is all that it can use.
export function install(ctx) {
  Registrar.open(ctx).register("reminder");
  alerts = Sink.open(ctx);
}

export const tasks = {
  // `wait` gives false when the host wants the task to end. Between two waits it may work for two seconds.
  start(_name, run) {
    while (run.wait(BETWEEN)) alerts.emit("Time for a break.");
  },
};
