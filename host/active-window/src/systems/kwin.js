// Runs inside KWin, and tells Conductor which window is active and what it is called. `listener`, the address on
// the bus that wants to know, is declared in front of this. KWin 5 says "client" where KWin 6 says "window".

let active = null;

function tell() {
    const window = active && !active.desktopWindow ? active : {};
    const text = (value) => (value === undefined || value === null ? "" : String(value));
    const names = [window.desktopFileName, window.resourceClass, window.resourceName].map(text);
    callDBus(listener, "/front", "org.conductor.Front", "IsInFront", ...names, text(window.caption), text(window.pid));
}

function follow(window) {
    try {
        active.captionChanged.disconnect(tell);
    } catch (gone) {
        // There was none, or it has closed.
    }
    active = window;
    if (active) {
        active.captionChanged.connect(tell);
    }
    tell();
}

(workspace.windowActivated || workspace.clientActivated).connect(follow);
follow(workspace.activeWindow || workspace.activeClient || null);
