/**
 * One wallet under calls of all protocols, run from a seed: with stored conversations, clients that leave early, answers
 * without usage, and reasoning next to the limit. Reading, estimate, bounds, charge and wallet view are the real ones; the
 * upstream is a model that bills all that such a request lets it bill, and PostgreSQL's count of a conversation is a model
 * of `beginConversationCall` and `endConversationCall`.
 */
import type { ChatProtocol, Estimate } from '../../schemas/config/catalog.ts'
import { modelEntry } from '../../schemas/config/catalog.ts'
import { countStoredTokens, estimateCharge } from '../../src/core/pricing/estimate.ts'
import { tokenCharge, tokenPrice } from '../../src/core/pricing/pricing.ts'
import { bytesOfTokens, estimateInputTokens } from '../../src/core/pricing/text-tokens.ts'
import { NO_USAGE, type TokenUsage } from '../../src/core/pricing/usage.ts'
import { boundUsage } from '../../src/core/pricing/usage-bounds.ts'
import { WalletView } from '../../src/credentials/wallet.ts'
import type { ChatCall } from '../../src/protocols/dialect.ts'
import { DIALECTS } from '../../src/protocols/registry.ts'
import type { Random } from './random.ts'

/** Errors that the simulation must find. */
export const PAID_CALL_MUTATIONS = [
  'the last answer resets its conversation',
  'a call that is left counts nothing',
  'reasoning is not counted',
] as const
export type PaidCallMutation = (typeof PAID_CALL_MUTATIONS)[number]

const STEPS = 300
const CONCURRENCY = 6
const WINDOW_TOKENS = 20_000
const MAX_OUTPUT_TOKENS = 2_000
const MAX_CHOICES = 3
/** The most calls of one tool that are believed. */
const MAX_TOOL_CALLS = 100
const MAX_TEXT_CHARS = 8_000

const MODEL = modelEntry.parse({
  id: 'm',
  context_window: WINDOW_TOKENS,
  max_output_tokens: MAX_OUTPUT_TOKENS,
  pricing: { unit: '1M_tokens', input: '100', output: '400', server_tool_call: '0.1' },
})
const PRICE = tokenPrice(MODEL.pricing)!

/** The most that one call can cost, by the limits of its model. */
export const CALL_MOST = tokenCharge(
  PRICE,
  {
    ...NO_USAGE,
    prompt: WINDOW_TOKENS * (1 + MAX_TOOL_CALLS),
    output: MAX_OUTPUT_TOKENS * MAX_CHOICES,
    serverToolCalls: MAX_TOOL_CALLS,
  },
  0,
)

/** What an upstream keeps, and what is counted of it. */
interface Conversation {
  /** Tokens, in truth. */
  stored: number
  tokens: number
  added: number
  readonly open: Map<number, number>
}

interface OpenCall {
  readonly id: number
  readonly call: ChatCall
  readonly estimate: bigint
  readonly usage: TokenUsage
  readonly cost: bigint
  readonly conversation: Conversation | null
  /** Counted as what the call may add, and what had been added before it. */
  readonly own: number
  readonly before: number
  readonly addedBefore: number
  isStored: boolean
}

export interface PaidCallsOutcome {
  readonly problem: string | null
  readonly admitted: number
  readonly refused: number
  /** Calls that cost more than their estimate. */
  readonly dearer: number
}

export const simulatePaidCalls = (
  random: Random,
  mode: Estimate,
  mutation: PaidCallMutation | null = null,
): PaidCallsOutcome => new PaidCalls(random, mode, mutation).run()

class PaidCalls {
  readonly #random: Random
  readonly #mode: Estimate
  readonly #mutation: PaidCallMutation | null
  readonly #view: WalletView
  readonly #conversations: Conversation[]
  readonly #open: OpenCall[] = []
  /** The most that calls under way together have cost beyond their estimates. */
  #excess = 0n
  #serial = 0
  #problem: string | null = null
  readonly #counts = { admitted: 0, refused: 0, dearer: 0 }

  constructor(random: Random, mode: Estimate, mutation: PaidCallMutation | null) {
    this.#random = random
    this.#mode = mode
    this.#mutation = mutation
    const balance = BigInt(random.int(1, 50)) * 20_000_000n
    this.#view = new WalletView({ accountId: 'a', balance, held: 0n, used: 0n, version: 1n })
    this.#conversations = Array.from({ length: 2 }, () => ({
      ...{ stored: 0, tokens: 0, added: 0, open: new Map() },
    }))
  }

  run(): PaidCallsOutcome {
    for (let step = 0; step < STEPS && this.#problem === null; step++) this.#step()
    while (this.#open.length > 0 && this.#problem === null) this.#end()
    return { ...this.#counts, problem: this.#problem }
  }

  #step(): void {
    const chance = this.#random.unit()
    if (chance < 0.5 && this.#open.length < CONCURRENCY) this.#call()
    else if (chance < 0.65) this.#store()
    else if (chance < 0.75) this.#addItems()
    else this.#end()
  }

  #call(): void {
    const random = this.#random
    const { protocol, body } = this.#request()
    const read = DIALECTS[protocol].read({ model: 'm', query: '', body: Buffer.from(JSON.stringify(body)) })
    const conversation = read.state?.conversation == null ? null : random.pick(this.#conversations)
    const own = countStoredTokens(MODEL, read)
    const id = this.#serial++
    const [before, addedBefore] = [conversation?.tokens ?? 0, conversation?.added ?? 0]
    const counted = conversation === null ? read : withKept(read, conversation)
    const asked = this.#mutation === 'reasoning is not counted' ? { ...counted, thinkingTokens: 0 } : counted
    const estimate = estimateCharge(PRICE, MODEL, asked, { mode: this.#mode, now: 0 })
    if (!this.#view.admit(estimate, true)) return void this.#counts.refused++
    this.#counts.admitted++
    if (this.#mutation === null || this.#mutation === 'reasoning is not counted')
      conversation?.open.set(id, own)
    const used = this.#used(read, conversation)
    const { usage } = boundUsage(used, MODEL, counted)
    const cost = tokenCharge(PRICE, usage, 0)
    if (cost > estimate) this.#counts.dearer++
    if (this.#mode === 'worst_case' && read.builtInTools.length === 0 && cost > estimate)
      this.#problem = `call ${id} costs ${cost}, and its worst case was ${estimate}: ${JSON.stringify(body)}`
    this.#open.push({
      ...{
        id,
        call: counted,
        estimate,
        usage,
        cost,
        conversation,
        own,
        before,
        addedBefore,
        isStored: false,
      },
    })
    const excess = this.#open.reduce((sum, open) => sum + max(0n, open.cost - open.estimate), 0n)
    this.#excess = max(this.#excess, excess)
  }

  /** An upstream that bills all that it may: each choice up to the limit, reasoning beside it. */
  #used(call: ChatCall, conversation: Conversation | null): TokenUsage {
    const random = this.#random
    const text = random.int(1, estimateInputTokens(call.conversationBytes))
    const beside = this.#mode === 'worst_case' ? call.promptBytes : 2 * call.promptBytes
    const rest = random.int(0, estimateInputTokens(beside) - text)
    const limit = (call.outputLimit ?? MAX_OUTPUT_TOKENS) + (call.thinkingTokens ?? 0)
    const most = Math.min(limit, Math.max(MAX_OUTPUT_TOKENS, call.outputLimit ?? 0))
    const tools = call.builtInTools.length * random.pick([0, 0, 1, 3, 20])
    const prompt = Math.min(text + rest + (conversation?.stored ?? 0), WINDOW_TOKENS)
    return {
      ...NO_USAGE,
      prompt: prompt * (1 + tools),
      output: random.pick([random.int(0, most), most]) * call.choices,
      serverToolCalls: tools,
    }
  }

  /** An upstream is done, and has stored what it read and said; this process may not have read the end yet. */
  #store(): void {
    const done = this.#open.filter(({ isStored }) => !isStored)
    if (done.length === 0) return
    const call = this.#random.pick(done)
    call.isStored = true
    if (call.conversation === null) return
    const said = call.usage.output + estimateInputTokens(call.call.promptBytes) - (call.call.keptTokens ?? 0)
    call.conversation.stored += Math.min(said, call.own)
  }

  #addItems(): void {
    const conversation = this.#random.pick(this.#conversations)
    const tokens = this.#random.int(1, 3_000)
    conversation.stored += tokens
    conversation.tokens += tokens
    conversation.added += tokens
  }

  #end(): void {
    if (this.#open.length === 0) return
    const [call] = this.#open.splice(this.#random.int(0, this.#open.length - 1), 1)
    const isLeft = this.#random.chance(0.3)
    const hasReport = call!.isStored && !isLeft && this.#random.chance(0.7)
    // A client that leaves pays for what was sent until then.
    const cost = isLeft ? this.#part(call!.cost) : call!.cost
    this.#view.end(call!.estimate, cost)
    this.#endIn(call!, hasReport)
    // An upstream that was not told to stop may store the answer after its client has left.
    if (isLeft && !call!.isStored && call!.conversation !== null && this.#random.chance(0.5))
      call!.conversation.stored += this.#random.int(0, call!.own)
    this.#check()
  }

  #part = (cost: bigint): bigint => (cost * BigInt(this.#random.int(0, 100))) / 100n

  #endIn({ id, conversation, own, before, addedBefore, call, usage }: OpenCall, hasReport: boolean): void {
    if (conversation === null) return
    conversation.open.delete(id)
    const said = usage.output + estimateInputTokens(call.promptBytes)
    if (this.#mutation === 'the last answer resets its conversation') {
      conversation.tokens = hasReport ? said : 0
      return
    }
    if (this.#mutation === 'a call that is left counts nothing' && !hasReport) return
    conversation.tokens = (hasReport ? said : before + own) + conversation.added - addedBefore
    conversation.added += own
  }

  #check(): void {
    const left = this.#view.balance
    if (left < -this.#excess)
      this.#problem = `the balance is ${left}, under the excess of -${this.#excess} of the calls under way`
    else if (left < -BigInt(CONCURRENCY) * CALL_MOST)
      this.#problem = `the balance is ${left}, under ${CONCURRENCY} calls of ${CALL_MOST} each`
  }

  #request(): { protocol: ChatProtocol; body: object } {
    const random = this.#random
    const text = 'x'.repeat(random.int(1, MAX_TEXT_CHARS))
    const limit = random.pick([null, 1, 100, random.int(1, MAX_OUTPUT_TOKENS)])
    const budget = random.pick([null, null, 500, random.int(1, 50_000)])
    const schema = { type: 'object', description: 'y'.repeat(random.int(0, 2_000)) }
    const hasTools = random.chance(0.3)
    const messages = [{ role: 'user', content: text }]
    const search = random.chance(0.15)
    switch (random.int(0, 4)) {
      case 0:
        return {
          protocol: 'chat-completions',
          body: {
            ...{
              model: 'm',
              messages,
              max_tokens: limit,
              n: random.int(1, MAX_CHOICES),
              thinking_budget: budget,
            },
            ...(search && { stream: true }),
            tools: [
              ...(hasTools ? [{ type: 'function', function: { name: 'f', parameters: schema } }] : []),
              ...(search ? [{ type: 'web_search' }] : []),
            ],
          },
        }
      case 1:
        return {
          protocol: 'messages',
          body: {
            ...{ model: 'm', messages, max_tokens: limit ?? MAX_OUTPUT_TOKENS, system: 'be brief' },
            ...(budget !== null && { thinking: { type: 'enabled', budget_tokens: budget } }),
            tools: [
              ...(hasTools ? [{ name: 'f', input_schema: schema }] : []),
              ...(search ? [{ type: 'web_search_20250305', name: 'web_search' }] : []),
            ],
          },
        }
      case 2:
        return {
          protocol: 'generate-content',
          body: {
            contents: [{ role: 'user', parts: [{ text }] }],
            generationConfig: {
              ...{ maxOutputTokens: limit, candidateCount: random.int(1, MAX_CHOICES) },
              ...(budget !== null && { thinkingConfig: { thinkingBudget: budget } }),
            },
            tools: hasTools ? [{ functionDeclarations: [{ name: 'f', parameters: schema }] }] : [],
          },
        }
      default:
        return {
          protocol: 'responses',
          body: {
            ...{ model: 'm', input: messages, max_output_tokens: limit, conversation: 'conv_1' },
            ...(budget !== null && { reasoning: { effort: random.pick(['low', 'medium', 'high']) } }),
            tools: hasTools ? [{ type: 'function', name: 'f', parameters: schema }] : [],
          },
        }
    }
  }
}

const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)

function withKept(call: ChatCall, { tokens, open }: Conversation): ChatCall {
  const inFlight = [...open.values()].reduce((sum, own) => sum + own, 0)
  const keptTokens = Math.min(tokens + inFlight, WINDOW_TOKENS)
  const kept = bytesOfTokens(keptTokens)
  const { conversationBytes, promptBytes } = call
  return {
    ...call,
    ...{ conversationBytes: conversationBytes + kept, promptBytes: promptBytes + kept, keptTokens },
  }
}
