/** Reads the part of a file that a client requests in its `range` header. RFC 9110, section 14. */

export interface ByteSpan {
  /** The first byte and the last one, both included. */
  readonly first: number
  readonly last: number
}

const ONE_RANGE = /^bytes=\s*(\d{0,15})\s*-\s*(\d{0,15})\s*$/i

/**
 * Returns the span. Null: the whole file, also for several parts at once and for an unknown form. `unsatisfiable`: the
 * file has no such part.
 */
export function readRange(header: string, size: number): ByteSpan | 'unsatisfiable' | null {
  const [, from = '', to = ''] = ONE_RANGE.exec(header) ?? []
  if (from === '' && to === '') return null
  if (from === '') {
    const length = Math.min(Number(to), size)
    return length === 0 ? 'unsatisfiable' : { first: size - length, last: size - 1 }
  }
  const first = Number(from)
  if (to !== '' && Number(to) < first) return null
  if (first >= size) return 'unsatisfiable'
  return { first, last: to === '' ? size - 1 : Math.min(Number(to), size - 1) }
}
