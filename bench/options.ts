import { FLAG, givenOptions, TEXT, TEXTS, UsageError, wholeNumber } from './harness/command-line.ts'
import { readPeer } from './subjects/peer.ts'
import type { Subject } from './subjects/subject.ts'

export interface Options {
  help: boolean
  quick: boolean
  /** Names of subjects and workloads; null is all that take part without being named. */
  only: string[] | null
  skip: string[]
  /** Subjects that take part in addition. */
  with: string[]
  /** Gateways that run already. */
  peers: Subject[]
  /** The port of the upstream; 0 is a free one. */
  port: number
  /** Where results are written; null is the place of the run's size. */
  out: string | null
}

const LAST_PORT = 65_535

export const usage = (subjects: readonly string[], workloads: readonly string[]): string =>
  `npm run bench -- [options]

  --quick        about a minute, fewer rounds, rougher figures
  --only A,B     only these subjects or workloads
  --skip A,B     without these
  --with A,B     also these subjects, which take part only on request: litellm
  --peer SPEC    also a gateway that runs on this machine and forwards to the bench upstream; repeatable:
                 NAME=URL,model=MODEL,key=KEY,pid=PID[,header=NAME:VALUE][,does=TEXT][,version=TEXT][,folder=PATH]
                 URL ends before /chat/completions; does= says what it does with a call; folder= is its installation
  --port N       the port of the bench upstream, for the configuration of peers; by default a free one
  --out DIR      write the results there
  --help         this text

subjects:  ${subjects.join(', ')}
workloads: ${workloads.join(', ')}
`

const names = (list: string): string[] => list.split(',').filter((name) => name !== '')

/** Reads the command line. Throws {@link UsageError} for an unknown option or a name that is not in `known`. */
export const parseOptions = (args: string[], known: readonly string[]): Options => {
  const values = givenOptions(args, {
    help: FLAG,
    quick: FLAG,
    only: TEXT,
    skip: TEXT,
    with: TEXT,
    peer: TEXTS,
    port: TEXT,
    out: TEXT,
  })
  const only = values.only === undefined ? null : names(values.only)
  const skip = names(values.skip ?? '')
  const more = names(values.with ?? '')
  const peers = (values.peer ?? []).map(readPeer)
  const all = [...known, ...peers.map(({ name }) => name)]
  const twice = all.find((name, index) => all.indexOf(name) !== index)
  if (twice !== undefined)
    throw new UsageError(`--peer: "${twice}" is the name of another subject or workload`)
  const stranger = [...(only ?? []), ...skip, ...more].find((name) => !all.includes(name))
  if (stranger !== undefined) throw new UsageError(`no subject and no workload is called "${stranger}"`)
  return {
    help: values.help ?? false,
    quick: values.quick ?? false,
    only,
    skip,
    with: more,
    peers,
    port: values.port === undefined ? 0 : wholeNumber('port', values.port, 0, LAST_PORT),
    out: values.out ?? null,
  }
}

/**
 * Returns whether a name of one kind is chosen. Naming some of a kind leaves out only the others of that kind; those `onRequest`
 * must be named.
 */
export const chooser =
  (kind: readonly string[], options: Options, onRequest: readonly string[] = []) =>
  (name: string): boolean => {
    const wanted = (options.only ?? []).filter((candidate) => kind.includes(candidate))
    if (options.skip.includes(name)) return false
    if (wanted.includes(name) || options.with.includes(name)) return true
    return wanted.length === 0 && !onRequest.includes(name)
  }
