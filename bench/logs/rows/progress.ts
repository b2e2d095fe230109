/** Progress of long work: one changing line on a terminal, elsewhere a line from time to time. */

const TERMINAL_EVERY_MS = 200
const LINE_EVERY_MS = 10_000
const MS_PER_SECOND = 1_000

interface ProgressOutput {
  write(text: string): unknown
  readonly isTTY?: boolean
}

const duration = (seconds: number): string =>
  seconds < 60 ? `${Math.ceil(seconds)} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`

/** Prints rows done, rows a second and the time left. `rowsBefore` existed at the start. */
export const describeProgress = (done: number, of: number, rowsBefore: number, seconds: number): string => {
  const perSecond = (done - rowsBefore) / Math.max(seconds, 1 / MS_PER_SECOND)
  const left = perSecond > 0 ? `, ${duration((of - done) / perSecond)} left` : ''
  const percent = Math.floor((100 * done) / of)
  const count = (value: number): string => Math.round(value).toLocaleString('en-US')
  return `${count(done)} of ${count(of)} rows (${percent} %), ${count(perSecond)} rows/s${left}`
}

export class Progress {
  readonly #output: ProgressOutput
  #openLine = false
  #nextAt = 0

  constructor(output: ProgressOutput) {
    this.#output = output
  }

  /** Prints a line that stays. */
  say(line: string): void {
    if (this.#openLine) this.#output.write('\r\x1b[K')
    this.#openLine = false
    this.#output.write(`${line}\n`)
    this.#nextAt = 0
  }

  /** Prints a line that the next one replaces. */
  show(line: string): void {
    const now = performance.now()
    if (now < this.#nextAt) return
    this.#nextAt = now + (this.#output.isTTY ? TERMINAL_EVERY_MS : LINE_EVERY_MS)
    this.#openLine = this.#output.isTTY === true
    this.#output.write(this.#openLine ? `\r\x1b[K${line}` : `${line}\n`)
  }

  /** Returns a function to call with the number of stored rows. */
  rows(what: string, of: number, rowsBefore: number): (done: number) => void {
    const startedAt = performance.now()
    return (done) =>
      this.show(
        `${what}: ${describeProgress(done, of, rowsBefore, (performance.now() - startedAt) / MS_PER_SECOND)}`,
      )
  }
}
