/**
 * Memory for settlements that wait to be booked. They outlive a collection of young objects, so that memory of their
 * own would be freed with the old ones, and at some thousand calls a second such collections follow one another, each
 * of which pauses the process for ten milliseconds. So pages are reused.
 */
import { Buffer } from 'node:buffer'

/** Several batches. */
export const PAGE_BYTES = 512 * 1024
/** Pages without a holder that are kept for later. */
const FREE_MAX_PAGES = 16

interface Page {
  readonly memory: Buffer
  used: number
  /** Number of slices in it that are not released. */
  holders: number
}

/** A copy: `page.memory[from, to)`, until it is released. */
export interface PageSlice {
  readonly page: Page
  readonly from: number
  readonly to: number
}

const makePage = (bytes: number): Page => ({ memory: Buffer.allocUnsafeSlow(bytes), used: 0, holders: 0 })

export class Pages {
  readonly #pageBytes: number
  readonly #free: Page[] = []
  #current: Page | null = null

  constructor(pageBytes: number) {
    this.#pageBytes = pageBytes
  }

  /** Copies bytes into a page; consecutive copies are adjacent within a page. */
  copy(bytes: Buffer): PageSlice {
    const page = this.#findPage(bytes.length)
    const from = page.used
    bytes.copy(page.memory, from)
    page.used += bytes.length
    page.holders++
    return { page, from, to: page.used }
  }

  /** Releases a slice. Called once for each: its bytes may be overwritten from now on. */
  release({ page }: PageSlice): void {
    page.holders--
    if (page.holders > 0) return
    page.used = 0
    const isSpare = page !== this.#current && page.memory.length === this.#pageBytes
    if (isSpare && this.#free.length < FREE_MAX_PAGES) this.#free.push(page)
  }

  #findPage(bytes: number): Page {
    if (bytes > this.#pageBytes) return makePage(bytes)
    if (this.#current === null || this.#current.used + bytes > this.#pageBytes)
      this.#current = this.#free.pop() ?? makePage(this.#pageBytes)
    return this.#current
  }
}
