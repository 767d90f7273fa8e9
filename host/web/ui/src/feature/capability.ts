// Capabilities of features, as a person compares them: in few words, and whether one was asked for before.

import type { CapabilityRequest } from '../api/types'

/** What a request says about itself, and not about what it opens. */
const ABOUT = new Set(['kind', 'required', 'reason'])

/** Its kind and what it is for, such as `network: osc, 127.0.0.1:*`. */
export function inFewWords(request: CapabilityRequest): string {
  const parts = Object.entries(request).flatMap(([key, value]) => {
    if (ABOUT.has(key) || value === false || value === null) return []
    if (value === true) return [key]
    return Array.isArray(value) ? value.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))) : [String(value)]
  })
  return parts.length > 0 ? `${request.kind}: ${parts.join(', ')}` : request.kind
}

/** Whether one of these requests is for the same; their reasons may differ. */
export function isAmong(request: CapabilityRequest, others: readonly CapabilityRequest[]): boolean {
  const wanted = inFewWords(request)
  return others.some((other) => inFewWords(other) === wanted)
}

/** The words in what a person has written, a line for each; fields that were never written in are left out. */
export function namedWords(fields: readonly (string | undefined)[]): string[] {
  return fields.flatMap((field) => (field ?? '').split('\n')).map((line) => line.trim()).filter((line) => line !== '')
}
