/** A whole run as JSON. */
import type { RunFacts } from '../harness/program.ts'
import type { Quantiles } from '../harness/statistics.ts'

/** CPU of the service and its engines during a phase, by role. */
export interface CpuUse {
  readonly seconds: number
  readonly cpuMsByRole: Readonly<Record<string, number>>
}

export interface TaskResults extends RunFacts {
  readonly isFull: boolean
  readonly tasks: number
  readonly seed: number
  /** The service before the first task. */
  readonly idle: CpuUse
  /** From the first submit until the upstream had the last. */
  readonly submit: CpuUse
  /** All tasks open, none younger than this at the beginning. */
  readonly open: CpuUse & {
    readonly ageSeconds: number
    readonly polls: number
    readonly lateness: Quantiles
    readonly residentMiBByRole: Readonly<Record<string, number>>
    /** Of the settler and task worker before the first task. */
    readonly tasksMiBBefore: number
  }
  /** From the first end at the upstream until the last row. */
  readonly end: CpuUse & {
    readonly spreadSeconds: number
    /** From the end at the upstream to the row. */
    readonly endToRow: Quantiles
    /** From the poll that found the end. */
    readonly seenToRow: Quantiles
  }
  /** Failed checks; none in a good run. */
  readonly failures: readonly string[]
}
