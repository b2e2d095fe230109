/** Rules for the models and the expiry of keys and tokens: the same by the API, the console and commands. */
import type { ConfigFile } from '../../../schemas/config/file.ts'
import { Failure } from '../../../schemas/failure.ts'
import { suggest } from '../../../src/core/suggest.ts'

export interface Configured {
  readonly config: () => ConfigFile
}

/**
 * Refuses an allowlist with a name that is no id or alias of the configuration: it would allow nothing.
 * @param present reads the names that the list has already; they may stay when a model is gone
 * @throws Failure `invalid_request` with the nearest known name
 */
export async function assertKnownModels(
  { config }: Configured,
  names: readonly string[] | null | undefined,
  present: () => Promise<readonly string[] | null> = async () => null,
): Promise<void> {
  if (!names || names.length === 0) return
  const known = new Set(config().models.flatMap(({ id, aliases }) => [id, ...aliases]))
  const unknown = names.filter((name) => !known.has(name))
  if (unknown.length === 0) return
  const stays = await present()
  const problems = unknown
    .filter((name) => stays?.includes(name) !== true)
    .map((name) => `The configuration has no model "${name}".${suggest(name, known)}`)
  if (problems.length > 0) throw new Failure('invalid_request', `allowed_models: ${problems.join(' ')}`)
}

/**
 * Reads when a key or a token expires.
 * @throws Failure `invalid_request` for an instant that is past
 */
export function parseExpiry(text: string | null, now: number): Date | null {
  if (text === null) return null
  const at = new Date(text)
  if (at.getTime() > now) return at
  throw new Failure('invalid_request', 'expires_at: is past, and would end it at once. Name a later time.')
}
