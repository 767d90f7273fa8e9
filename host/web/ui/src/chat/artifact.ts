// Which live picture belongs to what a model has looked at.

import type { Shown } from './conversation'

/** How everything hangs together, or what is plugged in. */
export type ArtifactKind = 'topology' | 'discovery'

const OF_TOOLS: Record<string, ArtifactKind> = {
  conductor_list_device_bindings: 'topology', conductor_get_binding_health: 'topology', conductor_list_devices: 'topology',
  conductor_scan_ports: 'discovery', conductor_list_discovered_ports: 'discovery', conductor_suggest_binding: 'discovery',
}

/**
 * The pictures of a conversation, by the number of the call that each stands behind: of each kind only the last, since all
 * would show the same, which is how things are now.
 */
export function artifacts(items: readonly Shown[]): Map<number, ArtifactKind> {
  const last = new Map<ArtifactKind, number>()
  for (const item of items) {
    if (item.kind !== 'call' || item.failed || item.result === null) continue
    const kind = Object.hasOwn(OF_TOOLS, item.tool) ? OF_TOOLS[item.tool] : undefined
    if (kind) last.set(kind, item.number)
  }
  return new Map([...last].map(([kind, number]) => [number, kind]))
}
