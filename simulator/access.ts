/** Checks keys and models, in the same way for every dialect; each words its errors itself. */

import type { IncomingHttpHeaders } from 'node:http'
import { SimulatedFailure } from './dialect.ts'
import { splitModelName } from './directives/grammar.ts'

/** The one key that is refused. */
export const BAD_KEY = 'sim-bad-key'
const MODEL_PREFIX = 'sim'

type NamedModel = {
  /** Without directives. */
  readonly model: string
  readonly directives: string | null
}

/**
 * Reads the name of a model.
 *
 * @param refuse says of a model that nobody serves why it is refused: with 404, unless given a failure
 * @throws {SimulatedFailure}
 */
export function findNamedModel(
  name: string,
  refuse: (model: string) => string | SimulatedFailure,
): NamedModel {
  const split = splitModelName(name)
  if (split.model.startsWith(MODEL_PREFIX)) return split
  const refusal = refuse(split.model)
  throw typeof refusal === 'string' ? new SimulatedFailure(404, 'model_not_found', refusal) : refusal
}

/** @throws {SimulatedFailure} 401 for the refused key; any other key, or none, is accepted */
export function refuseBadKey({ authorization }: IncomingHttpHeaders): void {
  if (authorization?.replace(/^Bearer\s+/i, '') !== BAD_KEY) return
  throw new SimulatedFailure(401, 'invalid_api_key', 'Incorrect API key provided: sim-*****key.')
}

/** @throws {SimulatedFailure} 401 without a bearer key, or for the refused one */
export function requireBearer({ authorization = '' }: IncomingHttpHeaders, message: string): void {
  const key = /^Bearer\s+(\S+)$/i.exec(authorization)?.[1]
  if (key === undefined || key === BAD_KEY) throw new SimulatedFailure(401, 'invalid_api_key', message)
}
