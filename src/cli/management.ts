/** Runs acts of the management API as commands. */
import { actOf, runAct } from '../../pipelines/management/act.ts'
import { commandCaller } from '../../pipelines/management/caller.ts'
import type { UserDeps } from '../../pipelines/management/people/rules.ts'
import type { AnswerOf, InputOf, Operation } from '../../schemas/management/operation.ts'
import type { Database } from '../postgres/database.ts'
import { operatorConfig } from './config/config.ts'
import type { Wiring } from './wiring.ts'

type Acts = readonly { readonly operation: Operation }[]

interface CommandContext<Deps> {
  readonly database: Database
  readonly deps: Deps
  /** The personal account in whose name the command is given. */
  readonly by?: string
}

/**
 * Runs the act of an operation in the name of the user of this machine, who may everything.
 * @throws Failure
 */
export const runCommandAct = <Deps, O extends Operation>(
  wiring: Pick<Wiring, 'actor'>,
  acts: Acts,
  operation: O,
  input: object,
  { database, deps, by }: CommandContext<Deps>,
): Promise<AnswerOf<O>> =>
  runAct(actOf<Deps, O>(acts, operation), input, {
    database,
    deps,
    caller: commandCaller(wiring.actor(), by ?? null),
    now: Date.now(),
  })

/** Runs the acts of one domain. */
export interface Runner {
  /**
   * Runs the act of an operation.
   * @param by the personal account in whose name the command is given
   * @throws Failure
   */
  run<O extends Operation>(operation: O, input: InputOf<O>, by?: string): Promise<AnswerOf<O>>
  /**
   * Reads the entries of a list, page by page.
   * @param most number of entries after which the list ends
   * @throws Failure
   */
  list<O extends Operation>(operation: O, input: InputOf<O>, most?: number): Promise<EntryOf<O>[]>
}

type EntryOf<O extends Operation> =
  AnswerOf<O> extends { readonly data: readonly (infer Entry)[] } ? Entry : never

/** The most that a page has. */
const PAGE_ENTRIES = 200

/** Returns the runner of the acts of one domain, on the database of the service. */
export const runnerOf = <Deps>(
  wiring: Pick<Wiring, 'actor' | 'withDatabase'>,
  acts: Acts,
  depsOf: () => Deps | Promise<Deps>,
): Runner =>
  runnerOn(wiring, acts, async (work) => {
    const deps = await depsOf()
    return wiring.withDatabase((database) => work(database, deps))
  })

/** Returns the runner of the acts of one domain, on the database that `open` opens with their dependencies. */
export function runnerOn<Deps>(
  wiring: Pick<Wiring, 'actor'>,
  acts: Acts,
  open: <T>(work: (database: Database, deps: Deps) => Promise<T>) => Promise<T>,
): Runner {
  return {
    run: (operation, input, by) =>
      open((database, deps) =>
        runCommandAct(wiring, acts, operation, input, { database, deps, ...(by !== undefined && { by }) }),
      ),
    list: (operation, input, most = Number.POSITIVE_INFINITY) =>
      open(async (database, deps) => {
        const entries: EntryOf<typeof operation>[] = []
        let cursor: string | null = null
        do {
          const limit = Math.min(PAGE_ENTRIES, most - entries.length)
          const page = { ...input, limit, ...(cursor !== null && { cursor }) }
          const answer = await runCommandAct(wiring, acts, operation, page, { database, deps })
          const { data, next_cursor } = answer as Page<EntryOf<typeof operation>>
          entries.push(...data)
          cursor = next_cursor
        } while (cursor !== null && entries.length < most)
        return entries
      }),
  }
}

interface Page<Entry> {
  readonly data: readonly Entry[]
  readonly next_cursor: string | null
}

/** Returns what acts of people need: the configuration and the public address. */
export const userDeps = async (wiring: Pick<Wiring, 'loadConfig' | 'publicUrl'>): Promise<UserDeps> => ({
  config: () => operatorConfig(wiring),
  publicUrl: await wiring.publicUrl(),
  // Who runs a command hands the link on.
  hasMail: false,
})
