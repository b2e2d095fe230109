/** One call with an agent key through the whole pipeline, between a knowledge base and an upstream of the test's own. */

import { Subscription } from 'rxjs'
import { type ChatDeps, chat } from '../../../pipelines/chat/chat.ts'
import { LateUsage } from '../../../pipelines/chat/forward/after-answer.ts'
import { SilenceWatch } from '../../../pipelines/chat/forward/stream-answer.ts'
import type { Agent, AgentFile } from '../../../schemas/accounts/agent.ts'
import type { ApiKey } from '../../../schemas/accounts/key.ts'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import { configFile } from '../../../schemas/config/file.ts'
import type { SearchResult, WikiPage } from '../../../schemas/knowledge/wiki.ts'
import { generateApiKey } from '../../../src/core/keys/material.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import { ChannelHealth } from '../../../src/core/routing/circuit-breaker.ts'
import { OutputRates } from '../../../src/core/routing/output-rates.ts'
import { RetryBudget } from '../../../src/core/routing/retry-budget.ts'
import { UsageOptionRefusals } from '../../../src/core/routing/usage-option-refusals.ts'
import type { WalletView } from '../../../src/credentials/wallet.ts'
import type { Reply } from '../../../src/http/handler.ts'
import { NO_PARAMS } from '../../../src/http/router.ts'
import type { Knowledge } from '../../../src/postgres/knowledge/repository.ts'
import type { ReadableBase } from '../../../src/postgres/knowledge/types.ts'
import { chatCompletions } from '../../../src/protocols/chat-completions/dialect.ts'
import { accountOf, apiKey, knownKey, walletView } from '../../support/known-key.ts'
import { ScriptedUpstream } from './forward-support.ts'

const RAW = generateApiKey()
export const PERSONA = 'Be polite.'
const pricing = { unit: '1M_tokens', input: '1000000', output: '2000000' } as const
const model = (id: string, capabilities: object = {}) => ({
  id,
  pricing,
  capabilities,
  default_max_tokens: 10,
})
const catalog = createCatalog(
  configFile.parse({
    models: [
      model('blind'),
      model('seeing', { vision: true }),
      model('searching', { web_search: true }),
      { ...model('failing'), fallbacks: ['blind'] },
    ],
    channels: ['one', 'two'].map((id) => ({
      id,
      protocol: 'chat-completions',
      base_url: `http://host-of-${id}:1/v1`,
      api_key: 'key',
      models: {
        ...{ blind: 'wire-blind', seeing: 'wire-seeing' },
        ...{ searching: 'wire-searching', failing: 'wire-failing' },
      },
      cost: { blind: { unit: '1M_tokens', input: '250000', output: '500000' } },
      tools: ['web_search'],
    })),
  }),
)

const FILE: AgentFile = {
  name: 'Support',
  model: 'blind',
  persona: PERSONA,
  temperature: 0.2,
  knowledge: [],
  web_search: false,
  image_generation: false,
}
export const agentWith = (file: Partial<AgentFile> = {}, more: Partial<Agent> = {}): Agent => ({
  id: 'agt_a',
  accountId: 'acc_a',
  state: 'published',
  file: { ...FILE, ...file },
  createdAt: new Date(0),
  updatedAt: new Date(0),
  ...more,
})

const base = (kbId: string, pages = 3): ReadableBase => ({ id: `row_${kbId}`, kbId, name: kbId, pages })
const PAGE = { id: 'page_1', title: 'Returns', body: 'Thirty days, with the receipt.' }

/** A knowledge base with one page, for every question; it records the question. */
export class OnePageWiki {
  readonly asked: unknown[] = []
  bases: ReadableBase[] = [base('default'), base('kb_shared'), base('kb_empty', 0)]
  hold: Promise<void> = Promise.resolve()
  isAway = false

  readonly edge: ChatDeps['knowledge'] = {
    listReadableBases: async (reader) => {
      this.asked.push(reader)
      if (this.isAway) throw new Error('connection refused')
      return this.bases
    },
    searchPages: async (bases: readonly ReadableBase[], query: string, range: object) => {
      this.asked.push({ bases: bases.map(({ kbId }) => kbId), query, range })
      await this.hold
      const result = { ...PAGE, snippet: '<mark>Thirty</mark> days', kb_id: 'default', score: 1 }
      return { totalHits: 1, results: [result as unknown as SearchResult] }
    },
    readPages: async (_bases: readonly ReadableBase[], ids: readonly string[]) =>
      ids.map((id) => ({ ...PAGE, id }) as unknown as WikiPage),
  } satisfies Pick<Knowledge, 'listReadableBases' | 'searchPages' | 'readPages'>
}

export interface Made {
  readonly agent?: Agent | null
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly balance?: string
  readonly key?: Partial<ApiKey>
  readonly accountModels?: readonly string[]
  readonly wiki?: OnePageWiki
}

export const ASK = { model: 'whatever', messages: [{ role: 'user', content: 'May I return it?' }] }

/** One call through the whole pipeline, to an upstream that does as the test says. */
export class Call {
  readonly attempts: ScriptedUpstream[] = []
  readonly settlements: Settlement[] = []
  readonly replies: Reply[] = []
  readonly view: WalletView
  readonly subscription = new Subscription()
  error: unknown = null

  constructor({
    agent = agentWith(),
    body = ASK,
    headers = {},
    wiki = new OnePageWiki(),
    ...made
  }: Made = {}) {
    this.view = walletView(made.balance ?? '100000000')
    const known = knownKey({
      key: apiKey({ kind: 'agent', agentId: 'agt_a', ...made.key }),
      account: accountOf({ allowedModels: made.accountModels ?? null }),
      view: this.view,
      agent,
    })
    const forwarding: Partial<ChatDeps['forwarding']> = {
      journal: {
        admit: ({ request_id }, written) => {
          written(null)
          return { requestId: request_id }
        },
        settle: (_, settlement, written) => {
          this.settlements.push(settlement)
          written?.()
        },
      },
      onSettled: () => {},
      onInFlight: () => {},
      retries: () => 0,
      retryBudget: new RetryBudget(),
      config: () => catalog.config,
      outputRates: new OutputRates(),
      silence: new SilenceWatch(),
      lateUsage: new LateUsage(),
      health: new ChannelHealth(),
      startTrace: null,
      fetchFiles: async () => new Map(),
      storeResponse: async () => {},
      usageOptionRefusals: new UsageOptionRefusals(),
      callUpstream: (request, handler) => {
        const attempt = new ScriptedUpstream(request, handler)
        this.attempts.push(attempt)
        return attempt
      },
    }
    const access: Partial<ChatDeps['access']> = {
      credentials: { peek: () => known, load: async () => known },
      catalog: () => catalog,
      onRefused: (settlement) => void this.settlements.push(settlement),
    }
    const deps: unknown = {
      access,
      forwarding,
      knowledge: wiki.edge,
      bodies: {},
      idempotency: {},
      background: {},
    }
    const sent: Readonly<Record<string, string>> = { authorization: `Bearer ${RAW}`, ...headers }
    const request = {
      requestId: 'req_a',
      method: 'POST',
      path: '/v1/chat/completions',
      params: NO_PARAMS,
      query: '',
      header: (name: string) => sent[name] ?? '',
      hasHeader: () => false,
      body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
      submittedAt: Date.now(),
      startedAt: performance.now(),
    }
    this.subscription.add(
      chat(
        deps as ChatDeps,
        chatCompletions,
      )(request).subscribe({
        next: (reply) => void this.replies.push(reply),
        error: (error: unknown) => {
          this.error = error
        },
      }),
    )
  }

  /** What the upstream was sent. */
  get sent() {
    return JSON.parse(this.attempts.at(-1)!.request.body.toString('utf8'))
  }

  get row(): Settlement {
    if (this.settlements.length !== 1) throw new Error(`${this.settlements.length} rows`)
    return this.settlements[0]!
  }

  /** Everything that is asked of the wiki here answers within a few turns. */
  async settled(): Promise<this> {
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    return this
  }
}
