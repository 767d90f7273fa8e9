// Requests go to the page's own origin, with the header that other sites can't send; failures are read whatever they are.

import { afterEach, expect, test, vi } from 'vitest'

import { address, type ApiError, failure, get, post, postLeaving, reportErrors } from './client'

afterEach(() => vi.unstubAllGlobals())

test('what goes into a path or a query stays within its place', () => {
  expect(address('/v1/tools/{name}', { name: '../a?b#c' })).toBe('/v1/tools/..%2Fa%3Fb%23c')
  expect(address('/v1/audit', {}, { before: 3, text: 'a&b=c', none: undefined, nothing: null })).toBe('/v1/audit?before=3&text=a%26b%3Dc')
})

test('what changes something carries the header, and what reads does not need it', async () => {
  const asked = vi.fn(async (_: string, init: RequestInit) => new Response(init.method === 'GET' ? '[]' : ''))
  vi.stubGlobal('fetch', asked)
  await get('/v1/plans')
  await post('/v1/undo')
  postLeaving('/v1/plans/{id}/reject', { id: '0123' })
  const [read, changed, left] = asked.mock.calls.map(([, init]) => init)
  expect(read).toMatchObject({ method: 'GET', credentials: 'same-origin', redirect: 'error' })
  expect(changed).toMatchObject({ method: 'POST', headers: { 'x-conductor-shell': '1' }, keepalive: false })
  expect(left, 'it outlives the page').toMatchObject({ method: 'POST', headers: { 'x-conductor-shell': '1' }, keepalive: true })
})

test('a failure is what the host says, or what there is of a page that is none of ours', async () => {
  const said = await failure(new Response('{"error":"no such plan","code":"not_found"}', { status: 404 }))
  expect(said).toMatchObject({ status: 404, code: 'not_found', message: 'no such plan' })
  const page = await failure(new Response('<h1>Bad gateway</h1>', { status: 502 }))
  expect(page).toMatchObject({ code: 'failed', message: '<h1>Bad gateway</h1>', isAway: true })
})

test('a host that is not there is told apart from a session that has ended', async () => {
  const seen: ApiError[] = []
  reportErrors((error) => seen.push(error))
  vi.stubGlobal('fetch', async () => Promise.reject(new TypeError('failed to fetch')))
  await expect(get('/v1/plans')).rejects.toMatchObject({ code: 'unreachable', isAway: true })
  vi.stubGlobal('fetch', async () => new Response('{"error":"sign in","code":"unauthorized"}', { status: 401 }))
  await expect(get('/v1/plans')).rejects.toMatchObject({ isSignedOut: true, isAway: false })
  expect(seen).toHaveLength(2)
})
