/** Checks the models that serve in place of another. */

import { suggest } from '../core/suggest.ts'
import type { CatalogNames } from './channel-checks.ts'
import type { Finding, SoundModel } from './model-checks.ts'

const TOKENS = '1M_tokens'

/** Returns why this name is no fallback of the model; null where it is one. */
function findFault(name: string, model: SoundModel, models: readonly SoundModel[], names: CatalogNames) {
  const alias = names.aliases.get(name)
  if (alias !== undefined) return `"${name}" is an alias: name the model by its id, "${alias}".`
  if (!names.ids.has(name)) return `There is no model "${name}" in the catalog.${suggest(name, names.ids)}`
  if (name === model.id) return 'A model cannot serve in place of itself.'
  const other = models.find(({ id }) => id === name)
  if (other?.callable === false) return `"${name}" cannot be called.`
  const isChat = (model.endpoint_type ?? null) === null
  if (isChat && other?.pricing?.unit !== undefined && other.pricing.unit !== TOKENS)
    return `"${name}" is no chat model: it is not priced by tokens.`
  if (other?.endpoint_type !== undefined && other.endpoint_type !== model.endpoint_type)
    return `"${name}" is a model of another endpoint: its endpoint_type is ${other.endpoint_type ?? 'that of chat'}.`
  return null
}

export const checkFallbacks = (models: readonly SoundModel[], names: CatalogNames): Finding[] =>
  models.flatMap((model, index) =>
    (model.fallbacks ?? []).flatMap((name, place): Finding[] => {
      const message = findFault(name, model, models, names)
      return message === null ? [] : [{ path: ['models', index, 'fallbacks', place], message }]
    }),
  )
