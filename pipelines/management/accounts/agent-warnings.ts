/** Why calls of an agent would be refused, although its file is sound. */

import { AGENT_TOOLS, type AgentFile } from '../../../schemas/accounts/agent.ts'
import type { ModelEntry } from '../../../schemas/config/catalog.ts'
import { suggest } from '../../../src/core/suggest.ts'
import type { Knowledge } from '../../../src/postgres/knowledge/repository.ts'

/** Returns what is wrong with the model of an agent, as parts of a sentence. */
export function warnOfModels(file: AgentFile, models: readonly ModelEntry[]): string[] {
  const model = models.find((entry) => entry.id === file.model || entry.aliases.includes(file.model))
  if (model === undefined) {
    const names = models.flatMap((entry) => [entry.id, ...entry.aliases])
    return [`the configuration has no model "${file.model}".${suggest(file.model, names)}`]
  }
  if (!model.callable || model.endpoint_type !== null)
    return [`the model "${file.model}" is none that chat calls may use`]
  return AGENT_TOOLS.filter((tool) => file[tool] && !model.capabilities[tool]).map(
    (tool) => `${tool} is on, and the model "${file.model}" does not have it`,
  )
}

/** Returns the knowledge bases that an agent may not read, as parts of a sentence. */
export async function warnOfKnowledge(
  database: { readonly knowledge: Knowledge },
  { id, accountId }: { readonly id: string; readonly accountId: string },
  { knowledge }: AgentFile,
): Promise<string[]> {
  if (knowledge.length === 0) return []
  const readable = await database.knowledge.listReadableBases({ accountId, agentId: id })
  return knowledge
    .filter((name) => !readable.some((base) => base.kbId === name || base.id === name))
    .map((name) => `it may not read the knowledge base "${name}": kb grant ${name} --to ${id}`)
}
