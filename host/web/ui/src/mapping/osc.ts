// Where an OSC input listens, as an action that sends to it names it.

import type { DiscoveredPort } from '../api/types'

/** Addresses by which a program on this computer reaches an input that listens there. */
const HERE = new Map([['127.0.0.1', '127.0.0.1'], ['localhost', '127.0.0.1'], ['0.0.0.0', '127.0.0.1'], ['[::1]', '[::1]'], ['[::]', '[::1]']])

/** The place, `HOST:PORT`, to send datagrams to from this computer; `null` if it is no such input, or does not listen. */
export function loopbackTarget(port: Pick<DiscoveredPort, 'protocol' | 'direction' | 'state' | 'key'>): string | null {
  if (port.protocol !== 'osc' || port.direction !== 'input' || port.state !== 'open') return null
  const [, host = '', number] = /^(\[[0-9a-f:]+\]|[^:/ ]+):(\d+)$/i.exec(port.key) ?? []
  const here = HERE.get(host.toLowerCase())
  return here && number ? `${here}:${number}` : null
}
