/** A fault of a configuration file, and its place. */

export interface Problem {
  /** The file as the caller named it. */
  readonly file: string
  /** Both count from 1. */
  readonly line: number
  readonly column: number
  /** Such as `models[2].pricing.input`; empty where it is about the file itself. */
  readonly field: string
  readonly message: string
}

export type Path = readonly PropertyKey[]

const PLAIN_KEY = /^[A-Za-z_][\w-]*$/

/** Prints `['models', 2, 'pricing']` as `models[2].pricing`; a key with a dot in it is quoted. */
export function printField(path: Path): string {
  let name = ''
  for (const part of path) {
    if (typeof part === 'number') name += `[${part}]`
    else if (PLAIN_KEY.test(String(part))) name += name === '' ? String(part) : `.${String(part)}`
    else name += `[${JSON.stringify(String(part))}]`
  }
  return name
}

/** Prints `tollgate.yaml:12:7 models[2].pricing.input: is required.` */
export function printProblem({ file, line, column, field, message }: Problem): string {
  return `${file}:${line}:${column} ${field === '' ? '' : `${field}: `}${message}`
}
