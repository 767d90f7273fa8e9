// How the chain of the audit is, as far as a page can tell: whether numbers are missing, and which hashes follow from the
// rows before them. It is `conductor audit verify` that judges the whole chain, with the key of its home.

import type { AuditRow } from '../api/types'

/** What was found of some rows that follow each other. */
export interface ChainState {
  /** The number after which one is missing; `null` if none is. */
  gap: number | null
  /** Rows whose hash was made again from the row and the hash before it, and is the same. */
  confirmed: number
  /** Rows whose hash could not be made again here: their details have numbers or keys that JSON in a browser changes. */
  unconfirmed: number
}

/** The bytes that a row's hash is of, after those of the hash before it. */
export function content(row: AuditRow): string {
  const { number, at, kind, what, who, subject, outcome, took_us, detail, door, scope, client, elicited } = row
  const told = elicited === null ? null : Number(elicited)
  const kept = [number, at, kind, what, who, subject, outcome, took_us, JSON.stringify(detail)]
  return JSON.stringify(door === null ? kept : [...kept, door, scope, client, told])
}

async function sha256(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)))
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Looks at rows, the oldest first. The first one of them has nothing before it that it could be held against. */
export async function chainState(rows: AuditRow[]): Promise<ChainState> {
  const state: ChainState = { gap: null, confirmed: 0, unconfirmed: 0 }
  for (let at = 1; at < rows.length; at += 1) {
    const before = rows[at - 1]
    const row = rows[at]
    if (!before || !row) continue
    if (row.number !== before.number + 1) {
      state.gap ??= before.number
      continue
    }
    if ((await sha256(before.hash + content(row))) === row.hash) state.confirmed += 1
    else state.unconfirmed += 1
  }
  return state
}
