// A page of the record shows a row that is missing, and confirms hashes that it can make again.

import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'

import type { AuditRow } from '../api/types'
import { chainState, content } from './chain'

function chain(length: number): AuditRow[] {
  const rows: AuditRow[] = []
  for (let number = 1; number <= length; number += 1) {
    const row = {
      number, at: 1000 + number, kind: 'tool', what: 'x', who: 'y', subject: null, outcome: 'done', took_us: null, detail: { n: number },
      door: 'socket', scope: 'owner', client: null, elicited: null, hash: '',
    } as unknown as AuditRow
    row.hash = createHash('sha256').update((rows.at(-1)?.hash ?? '') + content(row)).digest('hex')
    rows.push(row)
  }
  return rows
}

test('a whole chain is confirmed', async () => {
  expect(await chainState(chain(5))).toEqual({ gap: null, confirmed: 4, unconfirmed: 0 })
})

test('a row that is missing or was changed is seen', async () => {
  const rows = chain(5)
  expect((await chainState(rows.toSpliced(2, 1))).gap).toBe(2)
  rows[3] = { ...rows[3]!, who: 'z' }
  expect(await chainState(rows)).toMatchObject({ confirmed: 3, unconfirmed: 1 })
})
