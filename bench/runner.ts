import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Unavailable } from './harness/optional.ts'
import { areComparable } from './report/calls/placement.ts'
import type { Row, SubjectRecord } from './report/calls/results.ts'
import type { RunningSubject, Stage, Subject } from './subjects/subject.ts'
import { type Bench, untilAtRest, type Workload } from './workloads/workload.ts'

/** Runs every workload over every subject: round by round, subject after subject, so that noise falls on all. */

/** A host that moves the cores all the time may do so for longer than anybody waits. */
const MOST_TIMES_THE_ROUNDS = 2

export interface RunnerOptions {
  subjects: Subject[]
  workloads: Workload[]
  stage: Omit<Stage, 'folder'>
  /** A folder for this run; each subject gets one inside. */
  folder: string
  bench: Bench
  say(line: string): void
  /** Throws once the run is to stop. */
  checkpoint(): void
}

export interface RunnerResult {
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

  /** Rows of subjects that answer wrongly are marked; the run goes on. Rejects only when the bench itself breaks. */
  async run(): Promise<RunnerResult> {
    const { subjects, workloads } = this.#options
    const alone = workloads.filter((workload) => workload.alone)
    const together = workloads.filter((workload) => !workload.alone)
    for (const subject of subjects)
      this.#records.set(subject, { name: subject.name, title: subject.title, version: '', skipped: null })
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
        running.setAside?.(workload.gatewayAlone)
        return workload.prepare(subject, running, this.#options.bench)
      })
      await untilAtRest(running)
    }
    for (let round = 1; round <= rounds || this.#isWorthMore(round, rows); round++)
      for (const [subject, row] of rows)
        if (row.failed === null)
          await this.#round(workload, subject, row, `${round}/${Math.max(round, rounds)}`)
  }

  /** Where the cores were moved so often that nothing can be compared yet. */
  #isWorthMore(round: number, rows: ReadonlyMap<Subject, Row>): boolean {
    const { rounds } = this.#options.bench.size
    return rounds > 1 && round <= MOST_TIMES_THE_ROUNDS * rounds && !areComparable([...rows.values()])
  }

  async #oneByOne(workload: Workload): Promise<void> {
    for (const subject of this.#options.subjects) {
      if (!subject.holdsManyStreams) continue
      await this.#start(subject)
      const running = this.#running.get(subject)
      if (running && workload.takes(subject, running)) {
        const row = this.#addRow(workload.name, subject)
        await this.#attempt(row, () => workload.prepare(subject, running, this.#options.bench))
        await untilAtRest(running)
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
    await untilAtRest(running)
  }

  async #attempt(row: Row, what: () => Promise<void>): Promise<void> {
    this.#options.checkpoint()
    try {
      await what()
    } catch (error) {
      this.#options.checkpoint() // what fails because the run was stopped is nobody's failure
      row.failed = (error as Error).message
      row.rounds = []
      this.#options.say(`FAILED: ${row.subject} under ${row.workload}: ${row.failed}`)
    }
  }
}
