// Requests to the host, in the types of its OpenAPI document. Everything goes to the page's own origin.

import type { paths } from './openapi'
import type { ApiErrorBody, Confirmation } from './types'

/** The header without which the server takes no request that changes anything: other sites can't send it. */
const SHELL_HEADER = { 'x-conductor-shell': '1' }

/** What the host, or the shell's server, said instead of an answer. */
export class ApiError extends Error {
  constructor(
    /** The HTTP status; 0 if there was no answer at all. */
    readonly status: number,
    /** The API's code, such as `not_found`; `unreachable` if there was no answer. */
    readonly code: string,
    message: string,
    /** What a person has to agree to before the call is made. */
    readonly confirmation?: Confirmation,
  ) {
    super(message)
    this.name = 'ApiError'
  }

  /** Whether the browser has to sign in again. */
  get isSignedOut(): boolean {
    return this.status === 401
  }

  /** Whether no host answers. */
  get isAway(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504
  }
}

type Method = 'get' | 'post'
type With<M extends Method> = { [P in keyof paths]: paths[P][M] extends { responses: unknown } ? P : never }[keyof paths]
type Operation<P extends keyof paths, M extends Method> = NonNullable<paths[P][M]>
type Answer<O> = O extends { responses: { 200: { content: { 'application/json': infer Body } } } } ? Body : null
type Input<O> = O extends { requestBody: { content: { 'application/json': infer Body } } }
  ? Body
  : O extends { requestBody?: { content: { 'application/json': infer Body } } }
    ? Body | undefined
    : undefined
type PathOf<O> = O extends { parameters: { path: infer Values } } ? Values : Record<never, never>
type QueryOf<O> = O extends { parameters: { query?: infer Values } } ? Values : undefined

/** The address of a path with its parameters and query filled in. */
export function address(
  path: string,
  values: Record<string, string | number> = {},
  query: Record<string, string | number | boolean | null | undefined> = {},
): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(values[name] ?? '')))
  const asked = Object.entries(query).filter(([, value]) => value !== undefined && value !== null)
  const search = new URLSearchParams(asked.map(([name, value]) => [name, String(value)])).toString()
  return search ? `${filled}?${search}` : filled
}

/** Reads an answer that is no success. The text may be anything: a proxy's page, or nothing. */
export async function failure(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => '')
  try {
    const body = JSON.parse(text) as Partial<ApiErrorBody>
    if (typeof body.error === 'string') {
      return new ApiError(response.status, body.code ?? 'failed', body.error, body.confirmation ?? undefined)
    }
  } catch {
    // No JSON: what there is of it is shown below.
  }
  return new ApiError(response.status, 'failed', text.slice(0, 400) || `${response.status} ${response.statusText}`)
}

let onError: (error: ApiError) => void = () => {}

/** Has every failed request reported, so that the page knows when it is signed out or alone. */
export function reportErrors(report: (error: ApiError) => void): void {
  onError = report
}

async function request(method: 'GET' | 'POST', url: string, body?: unknown, signal?: AbortSignal, keepalive = false): Promise<Response> {
  const headers: Record<string, string> = method === 'GET' ? {} : { ...SHELL_HEADER }
  if (body !== undefined) headers['content-type'] = 'application/json'
  let response: Response
  try {
    const init: RequestInit = { method, headers, credentials: 'same-origin', cache: 'no-store', redirect: 'error', keepalive }
    if (body !== undefined) init.body = JSON.stringify(body)
    if (signal) init.signal = signal
    response = await fetch(url, init)
  } catch (error) {
    if (signal?.aborted) throw error
    const unreachable = new ApiError(0, 'unreachable', error instanceof Error ? error.message : String(error))
    onError(unreachable)
    throw unreachable
  }
  if (response.ok) return response
  const failed = await failure(response)
  onError(failed)
  throw failed
}

/** `GET` of a route. */
export async function get<P extends With<'get'>>(
  path: P,
  values?: PathOf<Operation<P, 'get'>>,
  query?: QueryOf<Operation<P, 'get'>>,
  signal?: AbortSignal,
): Promise<Answer<Operation<P, 'get'>>> {
  const url = address(path, values as Record<string, string>, query as Record<string, string> | undefined)
  return (await (await request('GET', url, undefined, signal)).json()) as Answer<Operation<P, 'get'>>
}

/** `POST` to a route. */
export async function post<P extends With<'post'>>(
  path: P,
  values?: PathOf<Operation<P, 'post'>>,
  body?: Input<Operation<P, 'post'>>,
  signal?: AbortSignal,
): Promise<Answer<Operation<P, 'post'>>> {
  const response = await request('POST', address(path, values as Record<string, string>), body, signal)
  const text = await response.text()
  return (text ? JSON.parse(text) : null) as Answer<Operation<P, 'post'>>
}

/** `POST` to a route from a page that is left: it is sent all the same, and the page does not live to read the answer. */
export function postLeaving<P extends With<'post'>>(path: P, values?: PathOf<Operation<P, 'post'>>, body?: Input<Operation<P, 'post'>>): void {
  request('POST', address(path, values as Record<string, string>), body, undefined, true).catch(() => {})
}

/** A route that answers with JSON lines, read to its end. A line that is no JSON is left out. */
export async function lines<T>(url: string, signal?: AbortSignal): Promise<T[]> {
  const text = await (await request('GET', url, undefined, signal)).text()
  return text.split('\n').flatMap((line) => {
    if (!line.trim()) return []
    try {
      return [JSON.parse(line) as T]
    } catch {
      return []
    }
  })
}

/** What a tool answered, in the shape that the caller knows it to have. */
export async function tool<T>(name: string, args: Record<string, unknown> = {}): Promise<{ result: T; plans: string[]; remarks: string[] }> {
  const answer = await post('/v1/tools/{name}', { name }, { args } as never)
  return { result: answer.result as T, plans: answer.plans ?? [], remarks: answer.remarks ?? [] }
}
