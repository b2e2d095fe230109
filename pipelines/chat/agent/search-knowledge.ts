/**
 * Searches an agent's knowledge bases for the latest user message: one search over all of them. See docs/api-rules.md,
 * "Agents".
 */

import { concatMap, of as just, map, type Observable } from 'rxjs'
import type { Agent } from '../../../schemas/accounts/agent.ts'
import { Failure } from '../../../schemas/failure.ts'
import { QUERY_MAX_CHARS } from '../../../schemas/knowledge/wiki.ts'
import { aroundHits, markedWords } from '../../../src/core/search/around-hits.ts'
import { excerpt } from '../../../src/core/search/excerpt.ts'
import {
  PROMPT_MAX_PAGES,
  PROMPT_PAGE_MAX_CHARS,
  type PromptPage,
} from '../../../src/core/search/knowledge-text.ts'
import type { Knowledge } from '../../../src/postgres/knowledge/repository.ts'
import type { ReadableBase } from '../../../src/postgres/knowledge/types.ts'
import { type BodyDeps, workOnBody } from '../../../src/protocols/body-work.ts'
import type { Dialect } from '../../../src/protocols/dialect.ts'
import { fromAbortable, type Stage } from '../../calls/pipeline.ts'
import type { PricedCall } from '../select-model.ts'
import { type AppliedAgent, calledByAgent } from './agent-part.ts'
import { applied } from './apply-agent.ts'

const RETRY_AFTER_SECONDS = 5

export interface KnowledgeDeps {
  readonly wiki: Pick<Knowledge, 'readableBases' | 'searchPages' | 'readPages'>
}

function unavailable(error: Error): never {
  throw new Failure(
    'service_unavailable',
    'The service cannot look into the knowledge of this agent at the moment. Try again in a minute.',
    { internal: `knowledge: ${error.message}`, headers: [['retry-after', String(RETRY_AFTER_SECONDS)]] },
  )
}

/** Runs `ask`, and drops its result when the client has left. */
const asked = <T>(ask: () => Promise<T>): Observable<T> => fromAbortable(() => ask().catch(unavailable))

/** @throws Failure `permission_denied` for a base that neither the organization nor the agent may read */
function chosen({ file }: Agent, readable: readonly ReadableBase[]): ReadableBase[] {
  const bases = file.knowledge.map((name) => {
    const base = readable.find(({ id, kbId }) => kbId === name || id === name)
    if (base !== undefined) return base
    throw new Failure('permission_denied', `This agent may not read its knowledge base '${name}'.`)
  })
  return [...new Set(bases)]
}

/** Reads the bases that the agent is attached to. */
export function basesOf({ wiki }: KnowledgeDeps, agent: Agent): Observable<readonly ReadableBase[]> {
  const reader = { accountId: agent.accountId, agentId: agent.id }
  return asked(() => wiki.readableBases(reader)).pipe(map((readable) => chosen(agent, readable)))
}

/** Emits the pages that answer the question, the best first. */
function pagesFor(
  { wiki }: KnowledgeDeps,
  bases: readonly ReadableBase[],
  question: string,
): Observable<readonly PromptPage[]> {
  const filled = bases.filter(({ pages }) => pages > 0)
  const query = excerpt(question.trim(), QUERY_MAX_CHARS).text
  if (filled.length === 0 || query === '') return just([])
  return asked(async () => {
    const { results } = await wiki.searchPages(filled, query, { limit: PROMPT_MAX_PAGES, offset: 0 })
    if (results.length === 0) return []
    const snippets = new Map(results.map(({ id, snippet }) => [id, snippet]))
    // A page deleted in between is not among them.
    const pages = await wiki.readPages(filled, [...snippets.keys()])
    return pages.map(({ id, title, body }) => ({
      id,
      title,
      text: aroundHits(body, markedWords(snippets.get(id) ?? ''), PROMPT_PAGE_MAX_CHARS),
    }))
  })
}

/** Gives an agent the pages of its knowledge bases that answer its client's question. @throws Failure `service_unavailable` */
export const searchKnowledge =
  <C extends PricedCall & AppliedAgent>(deps: KnowledgeDeps & BodyDeps, dialect: Dialect): Stage<C, C> =>
  (call: C) => {
    const { agent: part, request } = call
    if (part === undefined || part.bases.length === 0) return call
    const inform = async (pages: readonly PromptPage[]): Promise<C> => {
      const { body, detail } = await applied(deps, part.agent, part.given, pages)
      const { path, query } = request
      const input = { reader: dialect.protocol, path, query }
      const read = await workOnBody(deps, call.known.account.id, 'read', input, body)
      return { ...call, request: { ...request, body }, call: calledByAgent(read, call, detail) }
    }
    return pagesFor(deps, part.bases, part.question).pipe(
      concatMap((pages) => (pages.length === 0 ? just(call) : inform(pages))),
    )
  }
