/** Agents: an organization's configured voices. See docs/api-rules.md, "Agents"; docs/organizations.md, "Agents". */
import { z } from 'zod'

const PERSONA_MAX_CHARS = 32_000
const AGENT_KNOWLEDGE_MAX_BASES = 16

/** An agent file, as `agent create --file` reads it. Unknown fields are mistakes. */
export const agentFile = z.strictObject({
  name: z.string().trim().min(1).max(100),
  model: z.string().trim().min(1),
  persona: z.string().min(1).max(PERSONA_MAX_CHARS),
  temperature: z.number().min(0).max(2).nullable().default(null),
  /** Knowledge base ids; `default` is the organization's own. */
  knowledge: z.array(z.string().min(1)).max(AGENT_KNOWLEDGE_MAX_BASES).default([]),
  web_search: z.boolean().default(false),
  image_generation: z.boolean().default(false),
})
export type AgentFile = z.infer<typeof agentFile>

/** Its switches for tools that the upstream runs. */
export const AGENT_TOOLS = ['web_search', 'image_generation'] as const satisfies readonly (keyof AgentFile)[]

export const AGENT_STATES = ['draft', 'published', 'deleted'] as const
export type AgentState = (typeof AGENT_STATES)[number]

/** An edit of an agent that is not in force. */
export interface AgentDraft {
  readonly agentId: string
  readonly file: AgentFile
  readonly updatedAt: Date
}

export interface Agent {
  /** `agt_` + ULID. */
  readonly id: string
  /** The organization's account. */
  readonly accountId: string
  readonly state: AgentState
  readonly file: AgentFile
  readonly createdAt: Date
  readonly updatedAt: Date
}
