/** Runs acts of the management API as commands. */
import { actOf, runAct } from '../../pipelines/management/act.ts'
import { commandCaller } from '../../pipelines/management/caller.ts'
import type { UserDeps } from '../../pipelines/management/people/rules.ts'
import type { AnswerOf, Operation } from '../../schemas/management/operation.ts'
import type { Database } from '../postgres/database.ts'
import { operatorConfig } from './config/config.ts'
import type { Wiring } from './wiring.ts'

type Acts = readonly { readonly operation: Operation }[]

/**
 * Runs the act of an operation in the name of the user of this machine, who may everything.
 * @throws Failure
 */
export const runCommandAct = <Deps, O extends Operation>(
  wiring: Pick<Wiring, 'actor'>,
  acts: Acts,
  operation: O,
  input: object,
  { database, deps }: { readonly database: Database; readonly deps: Deps },
): Promise<AnswerOf<O>> =>
  runAct(actOf<Deps, O>(acts, operation), input, {
    database,
    deps,
    caller: commandCaller(wiring.actor()),
    now: Date.now(),
  })

/**
 * Runs an act that needs the database, the configuration and the public address alone.
 * @throws Failure
 */
export async function runOperation<O extends Operation>(
  wiring: Pick<Wiring, 'actor' | 'loadConfig' | 'publicUrl' | 'withDatabase'>,
  acts: Acts,
  operation: O,
  input: object,
): Promise<AnswerOf<O>> {
  const publicUrl = await wiring.publicUrl()
  const deps: UserDeps = { config: () => operatorConfig(wiring), publicUrl }
  return wiring.withDatabase((database) => runCommandAct(wiring, acts, operation, input, { database, deps }))
}
