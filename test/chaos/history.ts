/** What a run writes down while it runs: faults as they strike, and what clients sent and got. One JSON value a line. */
import { createWriteStream, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PlannedFault } from './faults/plan.ts'

const FILE = 'history.jsonl'

export interface FaultLine extends PlannedFault {
  readonly type: 'fault'
  readonly at: number
  readonly state: 'begins' | 'over' | 'skipped'
}

/** A key that calls, and what it may. Amounts count 1e-8 credit. */
export interface KeyLine {
  readonly type: 'key'
  readonly name: string
  readonly keyId: string
  readonly accountId: string
  readonly credit: number
  readonly cap: number | null
  readonly requestsPerMinute: number | null
  readonly concurrency: number | null
}

export interface PriceLine {
  readonly type: 'price'
  readonly model: string
  /** 1e-8 credit for a token of the prompt and of the answer, or for an image. */
  readonly input: number
  readonly output: number
  readonly image: number
}

/** One request and its answer. Instants are epoch milliseconds. */
export interface CallLine {
  readonly type: 'call'
  readonly kind: 'chat' | 'image' | 'poll'
  readonly keyId: string
  readonly node: string
  readonly model: string
  /** The Idempotency-Key. */
  readonly intent: string | null
  readonly sentAt: number
  /** When the head came. */
  readonly headAt: number | null
  readonly endedAt: number
  readonly status: number | null
  readonly requestId: string | null
  readonly isReplay: boolean
  readonly code: string | null
  /** `complete`: the answer was whole, and has its mark of the end. `left`: the client went. */
  readonly end: 'complete' | 'cut' | 'left'
  /** Tokens that the answer reports; null without. */
  readonly usage: { readonly input: number; readonly output: number } | null
  /** The id that the body gives the answer or the task. */
  readonly answerId: string | null
  /** Of a poll: the state of the task. */
  readonly state: string | null
}

/** A call as the provider saw it, read when the run was over. */
export interface ProviderLine {
  readonly type: 'provider'
  readonly requestIds: readonly string[]
  /** References under which more than one task was made. */
  readonly madeTwice: readonly string[]
}

/** What a key is shown as its balance when all is quiet. */
export interface BalanceLine {
  readonly type: 'balance'
  readonly accountId: string
  readonly node: string
  readonly remaining: string
}

/** The exit code and the output of `tollgate wallet verify`. */
export interface VerifyLine {
  readonly type: 'verify'
  readonly exitCode: number
  readonly output: string
}

export type HistoryLine = FaultLine | KeyLine | PriceLine | CallLine | ProviderLine | BalanceLine | VerifyLine

export type Record = (line: HistoryLine) => void

export interface History {
  readonly record: Record
  /** Resolves when all is on the disk. */
  close(): Promise<void>
}

export function openHistory(folder: string): History {
  mkdirSync(folder, { recursive: true })
  const file = createWriteStream(join(folder, FILE), { flags: 'a' })
  return {
    record: (line) => file.write(`${JSON.stringify(line)}\n`),
    close: () => new Promise((resolve) => file.end(resolve)),
  }
}

export const readHistory = (folder: string): HistoryLine[] =>
  readFileSync(join(folder, FILE), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as HistoryLine)
