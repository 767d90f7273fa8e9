// Which dialog is open over the page. There is one at a time.

import type { ToolView } from '../api/types'
import type { LearnedControl } from '../mapping/learned'
import type { DeviceLight } from '../picture/picture'
import type { Mapping } from './host.svelte'

export type Dialog =
  /** What an event does, and what could be made of it. `light` is that of a control of a picture; `null` if it is unknown. */
  | { kind: 'event'; device: string; text: string; control: string | null; light?: DeviceLight | null }
  /** What was said, in full: texts of others, a paragraph each. */
  | { kind: 'text'; title: string; lines: string[] }
  /** A new mapping: of an event, of controls that were learned (the first is meant), or from scratch. */
  | { kind: 'map'; device: string; text: string; controls?: LearnedControl[] }
  /** A mapping that is there. */
  | { kind: 'edit'; mapping: Mapping }
  /** A plan, to be decided. */
  | { kind: 'plan'; id: string }
  /** A model to be added. */
  | { kind: 'model' }
  /** A model to be removed, by its name. */
  | { kind: 'model-removal'; name: string }
  | ToolCall

/** A tool, to be called. */
export interface ToolCall {
  kind: 'tool'
  tool: ToolView
  /** What it is called, if that is more than its name. */
  title?: string
  /** What is to be known of its form, beside what the tool says. */
  help?: string
  /** What its form begins with. */
  args?: Record<string, unknown>
  /** Arguments that are not asked for. */
  fixed?: readonly string[]
  /** What says that there is to be nothing, of arguments that began with something. Others are left out then. */
  cleared?: Record<string, unknown>
}

class Dialogs {
  current = $state.raw<Dialog | null>(null)

  open(dialog: Dialog): void {
    this.current = dialog
  }

  close(): void {
    this.current = null
  }
}

export const dialogs = new Dialogs()
