import { FLAG, givenOptions, TEXT, UsageError } from './harness/command-line.ts'

export interface Options {
  help: boolean
  quick: boolean
  /** Names of subjects and workloads; null is all. */
  only: string[] | null
  skip: string[]
  /** Where results are written; null is the place of the run's size. */
  out: string | null
}

export const usage = (subjects: readonly string[], workloads: readonly string[]): string =>
  `npm run bench -- [options]

  --quick        about a minute, fewer rounds, rougher figures
  --only A,B     only these subjects or workloads
  --skip A,B     without these
  --out DIR      write the results there
  --help         this text

subjects:  ${subjects.join(', ')}
workloads: ${workloads.join(', ')}
`

const names = (list: string): string[] => list.split(',').filter((name) => name !== '')

/** Reads the command line. Throws {@link UsageError} for an unknown option or a name that is not in `known`. */
export const parseOptions = (args: string[], known: readonly string[]): Options => {
  const values = givenOptions(args, { help: FLAG, quick: FLAG, only: TEXT, skip: TEXT, out: TEXT })
  const only = values.only === undefined ? null : names(values.only)
  const skip = names(values.skip ?? '')
  const stranger = [...(only ?? []), ...skip].find((name) => !known.includes(name))
  if (stranger !== undefined) throw new UsageError(`no subject and no workload is called "${stranger}"`)
  return { help: values.help ?? false, quick: values.quick ?? false, only, skip, out: values.out ?? null }
}

/** Whether a name of one kind is chosen: naming some of a kind leaves out only the others of that kind. */
export const chooser =
  (kind: readonly string[], { only, skip }: Options) =>
  (name: string): boolean => {
    const wanted = (only ?? []).filter((candidate) => kind.includes(candidate))
    return (wanted.length === 0 || wanted.includes(name)) && !skip.includes(name)
  }
