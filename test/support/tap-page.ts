/** One page about a run of tap: how far it is, then what failed and where, from the lines that tap writes. */

/** Begins the output of a file in a process that runs several. */
export const FILE_COMMENT = 'File: '
const MAX_FAILURES = 12
const MAX_DIFF_LINES = 14

export interface Failure {
  readonly file: string
  readonly test: string
  /** What tap says of it in YAML, without the indentation. */
  readonly details: string[]
}

export class TapPage {
  passed = 0
  files = 0
  readonly failures: Failure[] = []
  /** The names of the subtests that are open, the file first. */
  #open: string[] = []
  /** Assertions, and failures, of each of them so far. */
  #seen: { checks: number; failures: number }[] = []
  #details: { failure: Failure; indent: number } | null = null

  /** Takes a line of tap's output. Returns true when it ends a file. */
  take(line: string): boolean {
    if (this.#takeDetail(line)) return false
    const subtest = /^((?: {4})*)# Subtest: (.*)$/.exec(line)
    if (subtest !== null) {
      const depth = subtest[1]!.length / 4
      this.#open[depth] = subtest[2]!
      this.#open.length = depth + 1
      this.#seen[depth] = { checks: 0, failures: 0 }
      this.#seen.length = depth + 1
      return false
    }
    const result = /^((?: {4})*)(not )?ok \d+(?: - (.*))?$/.exec(line)
    if (result === null) return false
    const [, indent = '', not, name = ''] = result
    const depth = indent.length / 4
    return this.#open.length > depth
      ? this.#endSubtest(depth, not !== undefined)
      : this.#takeCheck(indent.length, not !== undefined, name)
  }

  #takeCheck(indent: number, isFailure: boolean, name: string): false {
    for (const seen of this.#seen) seen.checks++
    if (!isFailure) this.passed++
    else this.#fail(indent, name)
    return false
  }

  #endSubtest(depth: number, isFailure: boolean): boolean {
    const { checks, failures } = this.#seen[depth]!
    this.#open.length = depth + 1
    // What failed inside is listed already.
    if (isFailure && failures === 0) this.#fail(depth * 4, 'it ended with an error')
    else if (depth === 0 && checks === 0) this.#fail(0, 'this file has no assertion')
    this.#open.length = depth
    this.#seen.length = depth
    if (depth > 0) return false
    this.files++
    return true
  }

  #fail(indent: number, name: string): void {
    const [file = '', ...tests] = this.#open
    const failure = { file, test: [...tests, name].join(' > '), details: [] }
    for (const seen of this.#seen) seen.failures++
    this.failures.push(failure)
    this.#details = { failure, indent: indent + 2 }
  }

  /** The YAML behind a failure begins in the next line, two columns further right. */
  #takeDetail(line: string): boolean {
    if (this.#details === null) return false
    const { failure, indent } = this.#details
    const text = line.slice(indent)
    const isFirst = failure.details.length === 0
    if ((isFirst && text !== '---') || text === '...') this.#details = null
    if (isFirst && text !== '---') return false
    failure.details.push(text)
    return true
  }

  /** The failures, each with its place and what differs. */
  toString(): string {
    const shown = this.failures.slice(0, MAX_FAILURES).map(printFailure)
    const more = this.failures.length - shown.length
    return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join('\n\n')
  }

  get counts(): string {
    return `${this.passed} passed, ${this.failures.length} failed`
  }
}

function printFailure({ file, test, details }: Failure): string {
  const text = details.join('\n')
  const line = /^ *fileName: (.*)\n *lineNumber: (\d+)/m.exec(text)
  const place = line === null ? file : `${line[1]}:${line[2]}${line[1] === file ? '' : `, of ${file}`}`
  const difference = blockOf(details, 'diff') ?? blockOf(details, 'stack') ?? []
  const rest = difference.length - MAX_DIFF_LINES
  const cut = rest > 0 ? [...difference.slice(0, MAX_DIFF_LINES), `(${rest} lines more)`] : difference
  return [`FAILED ${place}`, `  ${test}`, ...cut.map((text) => `    ${text}`)].join('\n')
}

/** The lines of `name: |`; undefined where there is no such block. */
function blockOf(details: readonly string[], name: string): string[] | undefined {
  const start = details.findIndex((line) => line.startsWith(`${name}: `))
  if (start < 0) return undefined
  const end = details.findIndex((line, index) => index > start && /^\S/.test(line))
  return details.slice(start + 1, end < 0 ? undefined : end).map((line) => line.replace(/^ {2}/, ''))
}
