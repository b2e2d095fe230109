/** A fault of a file in a folder, and its remedy. */

export interface FileProblem {
  /** Below the folder, with `/`. */
  readonly file: string
  /** Counts from 1. */
  readonly line: number
  /** A sentence. */
  readonly message: string
}

/** A file that cannot become a page. */
export class FileProblemError extends Error {
  override readonly name = 'FileProblemError'
  readonly problems: readonly FileProblem[]

  constructor(problems: readonly FileProblem[]) {
    super(problems.map(printProblem).join('\n'))
    this.problems = problems
  }
}

/** Prints `notes/a.md:3: The field …`. */
export const printProblem = ({ file, line, message }: FileProblem): string => `${file}:${line}: ${message}`

export const fileProblemError = (file: string, line: number, message: string): FileProblemError =>
  new FileProblemError([{ file, line, message }])
