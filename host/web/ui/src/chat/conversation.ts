// A conversation, from the events that the host keeps of it to what is shown.

import type { Recorded } from '../api/types'

/** A call of a tool that a model asked for. */
export interface Call {
  kind: 'call'
  number: number
  id: string
  tool: string
  args: string | null
  result: string | null
  failed: boolean
  /** Whether it proposed a plan. */
  proposed: boolean
  /** What a person is asked about it; with the answer once there is one. */
  approval: { id: string; effect: string; shown: string; phrase: string | null; agreed: boolean | null; at: number; expires: number } | null
}

/** What is shown of a conversation, one after the other. */
export type Shown =
  | { kind: 'message'; number: number; at: number; text: string }
  | { kind: 'text'; number: number; text: string }
  | { kind: 'reasoning'; number: number; text: string; ended: boolean }
  | Call
  | { kind: 'plan'; number: number; plan: string; description: string; outcome: string | null }
  | { kind: 'notification'; number: number; feature: string; text: string }
  | { kind: 'model-failed'; number: number; model: string; error: string }
  | { kind: 'compacted'; number: number; through: number }
  | { kind: 'ended'; number: number; outcome: string; why: string | null }

/** A conversation as it is shown. */
export interface View {
  items: Shown[]
  /** The number of the last event. */
  last: number
  /** Whether a turn is under way. */
  busy: boolean
  /** The model that was asked last. */
  model: string | null
  /** Billionths of a US dollar, of the answers whose cost is known. */
  cost: number
  /** Answers whose cost is unknown. */
  unknown: number
  tokens: { input: number; cached: number; output: number }
}

/** Nothing yet. */
export function empty(): View {
  return { items: [], last: 0, busy: false, model: null, cost: 0, unknown: 0, tokens: { input: 0, cached: 0, output: 0 } }
}

/** The view with more events. Those that it has already are left out, so that the same page may come twice. */
export function fold(view: View, events: Recorded[]): View {
  const next: View = { ...view, items: [...view.items], tokens: { ...view.tokens } }
  for (const event of events) {
    if (event.number <= next.last) continue
    next.last = event.number
    take(next, event)
  }
  return next
}

function take(view: View, event: Recorded): void {
  const { items } = view
  const { number } = event
  switch (event.kind) {
    case 'message':
      view.busy = true
      items.push({ kind: 'message', number, at: event.at, text: event.text })
      break
    case 'asked':
      view.model = event.model
      break
    case 'text': {
      const before = items.at(-1)
      if (before?.kind === 'text') items[items.length - 1] = { ...before, text: before.text + event.text }
      else items.push({ kind: 'text', number, text: event.text })
      break
    }
    case 'reasoning': {
      const before = items.at(-1)
      if (before?.kind === 'reasoning' && !before.ended) items[items.length - 1] = { ...before, text: before.text + event.text }
      else items.push({ kind: 'reasoning', number, text: event.text, ended: false })
      break
    }
    case 'reasoning_ended': {
      const at = items.findLastIndex((item) => item.kind === 'reasoning')
      const before = items[at]
      if (before?.kind === 'reasoning') items[at] = { ...before, ended: true }
      break
    }
    case 'call_begun':
      items.push({ kind: 'call', number, id: event.call, tool: event.tool, args: null, result: null, failed: false, proposed: false, approval: null })
      break
    case 'call': {
      const known = change(items, event.call, (call) => ({ ...call, tool: event.tool, args: event.args }))
      if (!known) items.push({ kind: 'call', number, id: event.call, tool: event.tool, args: event.args, result: null, failed: false, proposed: false, approval: null })
      break
    }
    case 'approval': {
      const { id, effect, shown, phrase } = event
      const approval = { id, effect, shown, phrase, agreed: null, at: event.at, expires: event.at + event.expires_in_ms }
      change(items, event.call, (call) => ({ ...call, approval }))
      break
    }
    case 'approval_decided':
      change(items, event.call, (call) => (call.approval ? { ...call, approval: { ...call.approval, agreed: event.agreed } } : call))
      break
    case 'call_ended':
      change(items, event.call, (call) => ({ ...call, result: event.result, failed: event.failed ?? false }))
      break
    case 'plan':
      change(items, event.call, (call) => ({ ...call, proposed: true }))
      items.push({ kind: 'plan', number, plan: event.plan, description: event.description ?? '', outcome: null })
      break
    case 'plan_decided': {
      const at = items.findLastIndex((item) => item.kind === 'plan' && item.plan === event.plan)
      const before = items[at]
      if (before?.kind === 'plan') items[at] = { ...before, outcome: event.outcome }
      break
    }
    case 'answered':
      view.tokens.input += event.usage.input
      view.tokens.cached += event.usage.cached
      view.tokens.output += event.usage.output
      if (event.cost === null) view.unknown += 1
      else view.cost += event.cost
      break
    case 'model_failed':
      items.push({ kind: 'model-failed', number, model: event.model, error: event.error })
      break
    case 'notification':
      items.push({ kind: 'notification', number, feature: event.feature, text: event.text })
      break
    case 'compacted':
      items.push({ kind: 'compacted', number, through: event.through })
      break
    case 'turn_ended':
      view.busy = false
      items.push({ kind: 'ended', number, outcome: event.outcome, why: event.why ?? null })
      break
    default:
  }
}

/** Changes the last call of this id: ids are unique in one answer, and may come again in another. */
function change(items: Shown[], id: string, to: (call: Call) => Call): boolean {
  const at = items.findLastIndex((item) => item.kind === 'call' && item.id === id)
  const before = items[at]
  if (before?.kind !== 'call') return false
  items[at] = to(before)
  return true
}
