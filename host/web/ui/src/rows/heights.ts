// Where the rows of a long table are, only some of which are in the page. Each has a height of its own, which is known once it
// was seen: until then it is taken for what rows usually have.

/** Rows whose heights are summed up, so that a place among many rows is found without looking at each. */
const BLOCK = 256

/** Rows from `first` on, up to but without `end`. */
export interface Rows {
  first: number
  end: number
}

/** The heights of so many rows, in pixels. */
export class RowHeights {
  readonly #heights: Float64Array
  readonly #blocks: Float64Array
  #total = 0

  /** `known` gives the height of a row if it is known. */
  constructor(readonly count: number, usual: number, known: (row: number) => number | undefined = () => undefined) {
    this.#heights = new Float64Array(count)
    this.#blocks = new Float64Array(Math.ceil(count / BLOCK))
    for (let row = 0; row < count; row += 1) this.#add(row, known(row) ?? usual)
  }

  /** The height of all of them. */
  get total(): number {
    return this.#total
  }

  /** Says how high a row is. Gives whether that is news. */
  set(row: number, height: number): boolean {
    const before = this.#heights[row]
    // Browsers round to parts of a pixel.
    if (before === undefined || Math.abs(before - height) < 0.5) return false
    this.#add(row, height - before)
    return true
  }

  /** How far from the top a row begins; the end of the last one for those after it. */
  top(row: number): number {
    const end = Math.max(0, Math.min(row, this.count))
    const block = Math.floor(end / BLOCK)
    let top = 0
    for (let index = 0; index < block; index += 1) top += this.#blocks[index] ?? 0
    for (let index = block * BLOCK; index < end; index += 1) top += this.#heights[index] ?? 0
    return top
  }

  /** The row that is so far from the top; the first or the last one beyond them. */
  at(offset: number): number {
    let left = offset
    let block = 0
    while (block < this.#blocks.length - 1 && left >= (this.#blocks[block] ?? 0)) {
      left -= this.#blocks[block] ?? 0
      block += 1
    }
    let row = block * BLOCK
    while (row < this.count - 1 && left >= (this.#heights[row] ?? 0)) {
      left -= this.#heights[row] ?? 0
      row += 1
    }
    return row
  }

  /** The rows that can be seen from `scrolled` on in a box of this height, with as many more before and after them as `more` says. */
  seen(scrolled: number, height: number, more: number): Rows {
    if (this.count === 0) return { first: 0, end: 0 }
    return { first: Math.max(0, this.at(scrolled) - more), end: Math.min(this.count, this.at(scrolled + height) + 1 + more) }
  }

  #add(row: number, height: number): void {
    const block = Math.floor(row / BLOCK)
    this.#heights[row] = (this.#heights[row] ?? 0) + height
    this.#blocks[block] = (this.#blocks[block] ?? 0) + height
    this.#total += height
  }
}
