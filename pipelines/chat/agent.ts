/**
 * Calls with the key of an agent: they get its instructions, its model, its limits, and the pages of its knowledge bases
 * that answer the question. See docs/api-rules.md, "Agents".
 */

import { randomBytes } from 'node:crypto'
import { concatMap, from, of as just, map, type Observable } from 'rxjs'
import type { Agent } from '../../schemas/accounts/agent.ts'
import { Failure } from '../../schemas/failure.ts'
import { QUERY_MAX_CHARS, type WikiPage } from '../../schemas/knowledge/wiki.ts'
import { printNumber, printText } from '../../src/core/call-log/detail-text.ts'
import { type Catalog, isModelAllowed, resolveAllowlist } from '../../src/core/routing/catalog.ts'
import { aroundHits, listMarkedWords } from '../../src/core/search/around-hits.ts'
import { excerpt } from '../../src/core/search/excerpt.ts'
import {
  PROMPT_MAX_PAGES,
  PROMPT_PAGE_MAX_CHARS,
  type PromptPage,
  writeKnowledge,
} from '../../src/core/search/knowledge-text.ts'
import type { ReadableBase, SearchPage, WikiReader } from '../../src/postgres/knowledge/types.ts'
import { type AgentBody, type LongBodyWork, workOnBody } from '../../src/protocols/body-work.ts'
import type { Dialect } from '../../src/protocols/dialect.ts'
import type { AuthenticatedCall, CallAccess, Caller } from '../calls/authenticate.ts'
import { fromAbortable, type Stage } from '../calls/pipeline.ts'
import { type AppliedAgent, completeCall, type FoundAgent, type RewrittenCall } from './read-call.ts'
import type { PricedCall } from './select-model.ts'

const denied = (why: string): Failure => new Failure('permission_denied', why)

/**
 * Returns the agent of the key.
 * @throws Failure `permission_denied` that names the problem with the agent
 */
function requireAgent(catalog: Catalog, { known: { agent, account, key } }: Caller): Agent {
  if (agent === null) throw denied('There is no agent behind this API key.')
  if (agent.state === 'deleted') throw denied('The agent of this API key has been deleted.')
  if (agent.state !== 'published' && !key.opensDraft)
    throw denied('The agent of this API key is not published.')
  if (agent.accountId !== account.id) throw denied('The agent of this API key is of another organization.')
  const model = catalog.resolve(agent.file.model)
  if (model !== null && !isModelAllowed(resolveAllowlist(catalog, account.allowedModels), model))
    throw denied(`The organization does not allow the model '${model.id}' of this agent.`)
  return agent
}

/**
 * Adds the agent of an agent key, and the knowledge bases that it may read.
 * @throws Failure `permission_denied`
 */
export const findAgent =
  <C extends AuthenticatedCall>({ catalog }: CallAccess, wiki: AgentKnowledge): Stage<C, C & FoundAgent> =>
  (call: C) => {
    if (call.known.key.kind !== 'agent') return call
    const agent = requireAgent(catalog(), call)
    if (agent.file.knowledge.length === 0) return { ...call, agent: { agent, bases: [] } }
    return findBases(wiki, agent).pipe(map((bases) => ({ ...call, agent: { agent, bases } })))
  }

/** 128 bits: a page that was written beforehand cannot hold the mark of its fence. */
const MARK_BYTES = 16

/**
 * Returns the body for the upstream, with what is asked in it, and the agent's entry in the call log.
 * @throws Failure `invalid_request`, as the Promise does
 */
export function writeAgentBody(
  bodies: LongBodyWork,
  { id, accountId, file }: Agent,
  given: Buffer,
  pages: readonly PromptPage[] = [],
): (AgentBody & { readonly detail: string }) | Promise<AgentBody & { readonly detail: string }> {
  const knowledge = writeKnowledge(pages, randomBytes(MARK_BYTES).toString('hex'))
  const detail =
    printText('agent', id) + (knowledge === null ? '' : printNumber('knowledge_pages', pages.length))
  const built = workOnBody(bodies, accountId, 'agent', { file, knowledge }, given)
  return built instanceof Promise ? built.then((body) => ({ ...body, detail })) : { ...built, detail }
}

/** Replaces the body of a call with an agent key. @throws Failure `invalid_request` that names the wrong field */
export const applyAgent =
  <C extends AuthenticatedCall & FoundAgent>(bodies: LongBodyWork): Stage<C, C & AppliedAgent> =>
  (call: C) => {
    if (call.agent === undefined) return call as C & { agent?: never }
    const { agent } = call.agent
    const { path, body: given } = call.request
    const add = ({ body, ...asked }: Awaited<ReturnType<typeof writeAgentBody>>) => ({
      ...call,
      request: { ...call.request, body },
      agent: { ...call.agent!, ...asked, given },
      // Another agent would have answered otherwise; text that the gateway adds is no part of the intent.
      intent: { path: `${path} ${agent.id}`, body: given },
    })
    const built = writeAgentBody(bodies, agent, given)
    return built instanceof Promise ? from(built).pipe(map(add)) : add(built)
  }

/** Refuses images to an agent whose model cannot see. @throws Failure `model_no_vision` */
export const requireVision =
  <C extends PricedCall & AppliedAgent>(): Stage<C, C> =>
  (call: C) => {
    if (!call.agent?.hasImages) return call
    if (!call.model.entry.capabilities.vision)
      throw new Failure('model_no_vision', 'The model of this agent cannot read images. Send only text.')
    return { ...call, fallbacks: call.fallbacks.filter(({ model }) => model.entry.capabilities.vision) }
  }

const RETRY_AFTER_SECONDS = 5

interface SearchRange {
  readonly limit: number
  readonly offset: number
}

/** The knowledge bases, as a call with the key of an agent reads them. */
export interface AgentKnowledge {
  listReadableBases(reader: WikiReader): Promise<ReadableBase[]>
  searchPages(bases: readonly ReadableBase[], query: string, range: SearchRange): Promise<SearchPage>
  readPages(bases: readonly ReadableBase[], ids: readonly string[]): Promise<WikiPage[]>
}

function throwUnavailable(error: Error): never {
  throw new Failure(
    'service_unavailable',
    'The service cannot look into the knowledge of this agent at the moment. Try again in a minute.',
    { internal: `knowledge: ${error.message}`, headers: [['retry-after', String(RETRY_AFTER_SECONDS)]] },
  )
}

/** Runs `ask`, and drops its result when the client has left. */
const askKnowledge = <T>(ask: () => Promise<T>): Observable<T> =>
  fromAbortable(() => ask().catch(throwUnavailable))

/** @throws Failure `permission_denied` for a base that neither the organization nor the agent may read */
function chooseBases({ file }: Agent, readable: readonly ReadableBase[]): ReadableBase[] {
  const bases = file.knowledge.map((name) => {
    const base = readable.find(({ id, kbId }) => kbId === name || id === name)
    if (base !== undefined) return base
    throw new Failure('permission_denied', `This agent may not read its knowledge base '${name}'.`)
  })
  return [...new Set(bases)]
}

/** Reads the bases that the agent is attached to. */
export function findBases(wiki: AgentKnowledge, agent: Agent): Observable<readonly ReadableBase[]> {
  const reader = { accountId: agent.accountId, agentId: agent.id }
  return askKnowledge(() => wiki.listReadableBases(reader)).pipe(
    map((readable) => chooseBases(agent, readable)),
  )
}

/** Emits the pages that answer the question, the best first. */
function findPages(
  wiki: AgentKnowledge,
  bases: readonly ReadableBase[],
  question: string,
): Observable<readonly PromptPage[]> {
  const filled = bases.filter(({ pages }) => pages > 0)
  const query = excerpt(question.trim(), QUERY_MAX_CHARS).text
  if (filled.length === 0 || query === '') return just([])
  return askKnowledge(async () => {
    const { results } = await wiki.searchPages(filled, query, { limit: PROMPT_MAX_PAGES, offset: 0 })
    if (results.length === 0) return []
    const snippets = new Map(results.map(({ id, snippet }) => [id, snippet]))
    // A page deleted in between is not among them.
    const pages = await wiki.readPages(filled, [...snippets.keys()])
    return pages.map(({ id, title, body }) => ({
      id,
      title,
      text: aroundHits(body, listMarkedWords(snippets.get(id) ?? ''), PROMPT_PAGE_MAX_CHARS),
    }))
  })
}

/** Gives an agent the pages of its knowledge bases that answer its client's question. @throws Failure `service_unavailable` */
export const searchKnowledge =
  <C extends PricedCall & AppliedAgent & RewrittenCall>(
    wiki: AgentKnowledge,
    bodies: LongBodyWork,
    dialect: Dialect,
  ): Stage<C, C> =>
  (call: C) => {
    const { agent: part, request } = call
    if (part === undefined || part.bases.length === 0) return call
    const inform = async (pages: readonly PromptPage[]): Promise<C> => {
      const { body, detail } = await writeAgentBody(bodies, part.agent, part.given, pages)
      const { path, query } = request
      const input = { reader: dialect.protocol, path, query }
      const read = await workOnBody(bodies, call.known.account.id, 'read', input, body)
      return { ...call, request: { ...request, body }, call: completeCall(read, call, detail) }
    }
    return findPages(wiki, part.bases, part.question).pipe(
      concatMap((pages) => (pages.length === 0 ? just(call) : inform(pages))),
    )
  }
