import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Unavailable } from './harness/optional.ts'
import { areComparable } from './report/calls/placement.ts'
import type { Row, SubjectRecord } from './report/calls/results.ts'
import type { RunningSubject, Stage, Subject } from './subjects/subject.ts'
import { type Bench, untilIdle, type Workload } from './workloads/workload.ts'

/**
 * Runs every workload over every subject. Rounds of the subjects alternate, and each round begins with another subject,
 * so that drift of the machine affects all alike.
 */

/** A workload whose samples cannot be compared yet repeats up to this multiple of its rounds. */
const MAX_ROUNDS_FACTOR = 2

/** Returns the list beginning with its element number `by`, counted round from the start. */
export const rotate = <T>(list: readonly T[], by: number): T[] => {
  const start = list.length === 0 ? 0 : by % list.length
  return [...list.slice(start), ...list.slice(0, start)]
}

interface RunnerOptions {
  subjects: Subject[]
  workloads: Workload[]
  stage: Omit<Stage, 'folder'>
  /** The folder of this run; each subject has one inside. */
  folder: string
  bench: Bench
  say(line: string): void
  /** Throws when the run has to stop. */
  checkpoint(): void
}

interface RunnerResult {
  subjects: SubjectRecord[]
  rows: Row[]
}

export class Runner {
  readonly #options: RunnerOptions
  readonly #running = new Map<Subject, RunningSubject>()
  readonly #records = new Map<Subject, SubjectRecord>()
  readonly #rows: Row[] = []

  constructor(options: RunnerOptions) {
    this.#options = options
  }

  /** Marks the rows of subjects that answer wrongly and continues. Rejects only when the bench itself fails. */
  async run(): Promise<RunnerResult> {
    const { subjects, workloads } = this.#options
    const alone = workloads.filter((workload) => workload.alone)
    const together = workloads.filter((workload) => !workload.alone)
    for (const subject of subjects)
      this.#records.set(subject, {
        name: subject.name,
        title: subject.title,
        work: subject.work,
        version: '',
        settings: [],
        skipped: null,
      })
    if (together.length > 0) for (const subject of subjects) await this.#start(subject)
    for (const workload of together) await this.#interleave(workload)
    for (const subject of subjects) await this.#stop(subject)
    for (const workload of alone) await this.#oneByOne(workload)
    return { subjects: [...this.#records.values()], rows: this.#rows }
  }

  async #start(subject: Subject): Promise<void> {
    const record = this.#records.get(subject)!
    if (record.skipped !== null) return
    const { stage, folder, say, checkpoint } = this.#options
    checkpoint()
    const own = join(folder, subject.name)
    mkdirSync(own, { recursive: true })
    try {
      const running = await subject.start({ ...stage, folder: own })
      this.#running.set(subject, running)
      record.version = running.version
      record.settings = running.settings ?? []
      for (const setting of record.settings) say(`${subject.name}: ${setting}`)
    } catch (error) {
      record.skipped = (error as Error).message
      if (!(error instanceof Unavailable)) this.#addRow('start', subject).failed = record.skipped
      say(`${subject.name}: skipped: ${record.skipped}`)
    }
  }

  async #stop(subject: Subject): Promise<void> {
    const running = this.#running.get(subject)
    this.#running.delete(subject)
    await running?.stop()
  }

  #addRow(workload: string, subject: Subject): Row {
    const row: Row = { workload, subject: subject.name, rounds: [], failed: null }
    this.#rows.push(row)
    return row
  }

  async #interleave(workload: Workload): Promise<void> {
    const rounds = workload.once ? 1 : this.#options.bench.size.rounds
    const rows = new Map<Subject, Row>()
    for (const [subject, running] of this.#running) {
      if (!workload.takes(subject, running)) continue
      const row = this.#addRow(workload.name, subject)
      rows.set(subject, row)
      await this.#attempt(row, () => {
        running.moveEngines?.(workload.enginesElsewhere)
        return workload.prepare(subject, running, this.#options.bench)
      })
      await untilIdle(running)
    }
    for (let round = 1; round <= rounds || this.#needsMoreRounds(round, rows); round++)
      for (const [subject, row] of rotate([...rows], round - 1))
        if (row.failed === null)
          await this.#round(workload, subject, row, `${round}/${Math.max(round, rounds)}`)
  }

  /** True if the host moved the cores too often to compare the samples. */
  #needsMoreRounds(round: number, rows: ReadonlyMap<Subject, Row>): boolean {
    const { rounds } = this.#options.bench.size
    return rounds > 1 && round <= MAX_ROUNDS_FACTOR * rounds && !areComparable([...rows.values()])
  }

  async #oneByOne(workload: Workload): Promise<void> {
    for (const subject of this.#options.subjects) {
      if (!subject.holdsManyStreams) continue
      await this.#start(subject)
      const running = this.#running.get(subject)
      if (running && workload.takes(subject, running)) {
        const row = this.#addRow(workload.name, subject)
        await this.#attempt(row, () => workload.prepare(subject, running, this.#options.bench))
        await untilIdle(running)
        if (row.failed === null) await this.#round(workload, subject, row, '1/1')
      }
      await this.#stop(subject)
    }
  }

  async #round(workload: Workload, subject: Subject, row: Row, round: string): Promise<void> {
    this.#options.say(`${workload.title}: ${subject.name} ${round}`)
    const running = this.#running.get(subject)!
    await this.#attempt(row, async () => {
      row.rounds.push(await workload.measure(subject, running, this.#options.bench))
    })
    await untilIdle(running)
  }

  async #attempt(row: Row, what: () => Promise<void>): Promise<void> {
    this.#options.checkpoint()
    try {
      await what()
    } catch (error) {
      this.#options.checkpoint() // A stop of the run is no failure of the subject.
      row.failed = (error as Error).message
      row.rounds = []
      this.#options.say(`FAILED: ${row.subject} under ${row.workload}: ${row.failed}`)
    }
  }
}
