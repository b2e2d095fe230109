/** Decodes limiter messages, and splits and assembles long reports. */
import { Buffer } from 'node:buffer'
import {
  type LimitMessage,
  type LimitReport,
  limitMessage,
  MAX_LIMIT_ROWS,
} from '../../schemas/accounts/limits.ts'
import type { SlotCounts } from '../core/limits/limiter-state.ts'

/** Returns the message; null for bytes that no process of this service would send. */
export function decodeMessage(payload: Uint8Array): LimitMessage | null {
  try {
    const parsed = limitMessage.safeParse(JSON.parse(Buffer.from(payload).toString('utf8')))
    return parsed.success ? parsed.data : null
  } catch {
    return null
  }
}

/** Returns the report in messages that NATS takes; in one, unless thousands of accounts are active. */
export function splitReport(report: Omit<LimitReport, 'more'>): LimitReport[] {
  const admitted = report.admitted.flatMap((row) =>
    splitRows(row.counts).map((counts) => [{ ...row, counts }]),
  )
  const held = splitRows(report.held)
  const rows = report.admitted.reduce((sum, { counts }) => sum + counts.length, report.held.length)
  if (rows <= MAX_LIMIT_ROWS) return [{ ...report, more: false }]
  const parts = Math.max(held.length, admitted.length)
  return Array.from({ length: parts }, (_, at) => ({
    ...report,
    held: held[at] ?? [],
    admitted: admitted[at] ?? [],
    more: at < parts - 1,
  }))
}

function splitRows<T>(rows: readonly T[]): T[][] {
  const chunks: T[][] = []
  for (let at = 0; at < rows.length; at += MAX_LIMIT_ROWS) chunks.push(rows.slice(at, at + MAX_LIMIT_ROWS))
  return chunks
}

/** Puts together what came in parts. */
export class ReportAssembler {
  readonly #held = new Map<string, Map<string, number>>()

  /** Adds a part. Returns all slots of the sender with its last part; null before. */
  add({ from, held, more }: LimitReport): SlotCounts | null {
    const all = this.#held.get(from) ?? new Map<string, number>()
    for (const [subject, count] of held) all.set(subject, count)
    if (more) this.#held.set(from, all)
    else this.#held.delete(from)
    return more ? null : all
  }

  /** Drops the parts of one sender, or of all. */
  forget(from?: string): void {
    if (from === undefined) this.#held.clear()
    else this.#held.delete(from)
  }
}
