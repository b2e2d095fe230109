/**
 * A conversation through two protocols and back: what both can say stays, and what one cannot say is named. Recorded streams
 * through each of the twelve translations, split at every byte, give the same bytes.
 */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import t from 'tap'
import type {
  Conversation,
  ConversationSettings,
  ConversationTurn,
  OfferedTool,
  ReasoningDepth,
  ToolChoice,
  TurnPart,
} from '../../../schemas/chat/conversation.ts'
import { CHAT_PROTOCOLS, type ChatProtocol } from '../../../schemas/config/catalog.ts'
import type { ChatCall } from '../../../src/protocols/dialect.ts'
import { CLIENT_SIDES, UPSTREAM_SIDES } from '../../../src/protocols/registry.ts'
import { DroppedFields } from '../../../src/protocols/translate/dropped-fields.ts'
import { translation } from '../../../src/protocols/translate/translation.ts'
import { STREAMS } from './chat-completions/reference.ts'
import { encodeOptions } from './encode-options.ts'
import { checkEverySplit, outputInPieces } from './every-split.ts'
import { EVENT_STREAMS } from './generate-content/streams.ts'
import { MESSAGES_STREAMS } from './messages/streams.ts'
import { chatWith, readBody } from './request/plain-requests.ts'
import { RESPONSES_STREAMS } from './responses/streams.ts'

const SEED = 43
const RUNS = 100
/** Shorter than most events: each comes in several pieces, and with the beginning of the next. */
const CUT_GAP = 64
const CREATED_MS = 1_700_000_000_000

/** Models with all that their protocol has. */
const MODELS: Readonly<Record<ChatProtocol, string>> = {
  'chat-completions': 'gpt-5.5',
  messages: 'claude-opus-5',
  'generate-content': 'gemini-3-flash',
  responses: 'gpt-5.5',
}

const PAIRS = CHAT_PROTOCOLS.flatMap((from) =>
  CHAT_PROTOCOLS.filter((to) => to !== from).map((to) => [from, to] as const),
)

t.test('a conversation through two protocols and back', async (t) => {
  const word = fc.string({ unit: 'grapheme', maxLength: 6 }).map((text) => `t${text.replaceAll(/\s/g, '')}`)
  const name = fc.stringMatching(/^[a-z]{1,6}$/)
  const path = 'here'

  const image = name.map(
    (text): TurnPart => ({
      type: 'image',
      source: { type: 'inline', mediaType: 'image/png', base64: Buffer.from(text).toString('base64') },
      path,
    }),
  )
  const pdf = name.map(
    (text): TurnPart => ({
      type: 'file',
      source: { type: 'inline', mediaType: 'application/pdf', base64: Buffer.from(text).toString('base64') },
      filename: `${text}.pdf`,
      path,
    }),
  )
  const cache = fc.constantFrom(undefined, undefined, undefined, { type: 'ephemeral' })
  const text = fc.record({ text: word, cache }).map(({ text, cache }): TurnPart & { type: 'text' } => ({
    type: 'text',
    text,
    ...(cache !== undefined && { cache }),
  }))
  const input = fc.dictionary(name, fc.oneof(word, fc.integer(), fc.boolean(), fc.constant(null)), {
    maxKeys: 3,
  })
  const called = fc.record({
    input,
    name,
    answer: word,
    isError: fc.boolean(),
    files: fc.array(image, { maxLength: 1 }),
  })

  interface Exchange {
    readonly asked: readonly TurnPart[]
    readonly answered: string
    readonly called: readonly (typeof called extends fc.Arbitrary<infer Value> ? Value : never)[]
  }

  /** A question, and its answer with calls of tools and their results. */
  const exchange: fc.Arbitrary<Exchange> = fc.record({
    asked: fc.array(fc.oneof({ weight: 3, arbitrary: text }, image, pdf), { minLength: 1, maxLength: 3 }),
    answered: word,
    called: fc.array(called, { maxLength: 3 }),
  })

  function turnsOf(exchanges: readonly Exchange[], last: TurnPart): ConversationTurn[] {
    let ids = 0
    const turns = exchanges.flatMap(({ asked, answered, called }): ConversationTurn[] => {
      const from = ids
      ids += called.length
      const calls = called.map(
        (each, index): TurnPart => ({
          type: 'tool_call',
          id: `id${from + index}`,
          name: each.name,
          kind: 'function',
          input: JSON.stringify(each.input),
          seal: null,
          path,
        }),
      )
      const results = called.map(({ answer, isError, files }, index): TurnPart => {
        const content = [{ type: 'text', text: answer } as const, ...(files as never[])]
        return {
          type: 'tool_result',
          callId: `id${from + index}`,
          content,
          isPlain: files.length === 0,
          isError,
          path,
        }
      })
      return [
        { role: 'user', parts: asked },
        { role: 'assistant', parts: [{ type: 'text', text: answered }, ...calls] },
        ...(results.length === 0 ? [] : [{ role: 'user', parts: results } as const]),
      ]
    })
    return [...turns, { role: 'user', parts: [last] }]
  }

  const schema = fc
    .dictionary(name, fc.constantFrom('string', 'integer', 'boolean'), { minKeys: 1, maxKeys: 3 })
    .map((fields) => ({
      type: 'object',
      properties: Object.fromEntries(Object.entries(fields).map(([field, type]) => [field, { type }])),
      required: Object.keys(fields),
      additionalProperties: false,
    }))
  const offered = fc
    .record({ name, description: fc.option(word), schema, isStrict: fc.boolean(), cache })
    .map(({ cache, ...tool }): OfferedTool => ({ type: 'function', ...tool, path, ...(cache && { cache }) }))
  const search = fc
    .record({ domains: fc.uniqueArray(fc.constantFrom('a.example', 'b.example')), isPlaced: fc.boolean() })
    .map(
      ({ domains, isPlaced }): OfferedTool => ({
        type: 'web_search',
        allowedDomains: domains,
        blockedDomains: [],
        location: isPlaced ? { country: 'CH' } : null,
        contextSize: null,
        maxUses: null,
        given: { type: 'web_search' },
        path,
      }),
    )
  /** One of free text, and one in a group. */
  const grouped = fc
    .record({ name, namespace: fc.option(name, { nil: undefined }), isCustom: fc.boolean() })
    .map(
      ({ name, namespace, isCustom }): OfferedTool => ({
        ...(isCustom
          ? { type: 'custom', format: null }
          : {
              type: 'function',
              schema: { type: 'object', properties: { path: { type: 'string' } } },
              isStrict: false,
            }),
        ...{ name, description: 'does it', path },
        ...(namespace !== undefined && { namespace }),
      }),
    )
  const tools = fc
    .tuple(
      fc.uniqueArray(fc.oneof({ weight: 3, arbitrary: offered }, grouped), {
        maxLength: 3,
        selector: (tool) => 'name' in tool && tool.name,
      }),
      fc.option(search),
    )
    .map(([functions, searching]) => (searching === null ? functions : [...functions, searching]))

  const set = <T>(value: fc.Arbitrary<T>) =>
    fc.option(
      value.map((value) => ({ field: 'here', value })),
      { nil: undefined, freq: 2 },
    )
  const tenth = fc.integer({ min: 1, max: 10 }).map((tenths) => tenths / 10)
  const format: fc.Arbitrary<NonNullable<ConversationSettings['format']>['value']> = fc.oneof(
    fc.constant({ type: 'json' } as const),
    fc
      .record({ schema, isStrict: fc.boolean(), name })
      .map(
        ({ schema, isStrict, name }) =>
          ({ type: 'schema', name, description: null, schema, isStrict, path }) as const,
      ),
  )
  const settings: fc.Arbitrary<ConversationSettings> = fc.record({
    temperature: set(tenth),
    topP: set(tenth),
    topK: set(fc.integer({ min: 1, max: 99 })),
    stop: set(fc.array(name, { minLength: 1, maxLength: 4 })),
    seed: set(fc.nat()),
    choices: set(fc.constant(2)),
    presencePenalty: set(tenth),
    frequencyPenalty: set(tenth),
    reasoning: set(
      fc.record({
        depth: fc.oneof(
          fc.constantFrom('low', 'medium', 'high').map((effort) => ({ type: 'effort', effort }) as const),
          fc.constant({ type: 'off' } as const),
        ),
        isHidden: fc.constant(false),
      }),
    ),
    format: set(format),
    verbosity: set(fc.constantFrom('low', 'high')),
    logprobs: set(fc.constant(true)),
    user: set(name),
    metadata: set(fc.constant({ order: '7' })),
    cacheKey: set(name),
    serviceTier: set(fc.constantFrom('flex', 'priority')),
  })

  const conversation: fc.Arbitrary<Conversation> = fc
    .record({
      instructions: fc.array(text, { maxLength: 2 }),
      exchanges: fc.array(exchange, { maxLength: 2 }),
      last: text,
      tools,
      choice: fc.nat(),
      isParallel: fc.boolean(),
      settings,
    })
    .map(({ exchanges, last, choice, tools, isParallel, ...rest }) => ({
      ...rest,
      tools,
      isParallel,
      turns: turnsOf(exchanges, last),
      toolChoice: chosen(tools, choice),
      settings: { ...rest.settings, ...(!isParallel && { singleCall: { field: 'here', value: true } }) },
    }))

  function chosen(tools: readonly OfferedTool[], chance: number): Conversation['toolChoice'] {
    const names = tools.flatMap((tool) =>
      tool.type === 'function' && tool.namespace === undefined ? [tool.name] : [],
    )
    const [first] = names
    if (first === undefined) return null
    const allowed: ToolChoice = { mode: 'required', allowed: [first] }
    const choices: (ToolChoice | null)[] = [null, 'auto', 'none', 'required', { name: first }, allowed]
    const value = choices[chance % choices.length]!
    return value === null ? null : { field: 'here', value }
  }

  /** What is said, and how a warning names it where it is lost. */
  type Facts = ReadonlyMap<string, RegExp>

  const fullName = ({ name, namespace }: { readonly name: string; readonly namespace?: string }): string =>
    namespace === undefined ? name : `${namespace}__${name}`

  const isOneText = (schema: object | null): boolean =>
    Object.keys((schema as { properties?: object } | null)?.properties ?? {}).join() === 'input'

  const escaped = (field: string): string => field.replaceAll(/[^\w]/g, '\\$&')

  /** To limit the choice is to offer fewer tools. */
  function offeredTools({ tools, toolChoice }: Conversation) {
    const choice = toolChoice?.value ?? 'auto'
    if (typeof choice === 'string' || 'name' in choice) return { choice, tools }
    const allowed = tools.filter((tool) => 'name' in tool && choice.allowed.includes(tool.name))
    return { choice: choice.mode, tools: allowed }
  }

  function factsOf(conversation: Conversation): Facts {
    const { instructions, turns, toolChoice, settings, cache } = conversation
    const facts = new Map<string, RegExp>()
    const say = (what: unknown[], names: RegExp) => facts.set(JSON.stringify(what), names)
    const NEVER = /^$/
    say(
      [
        'instructions',
        instructions
          .map(({ text }) => text)
          .join('')
          .replaceAll('\n', ''),
      ],
      NEVER,
    )
    const order = new Map<string, number>()
    const texts: Record<string, string> = { user: '', assistant: '' }
    let isCached = cache !== undefined || settings.cacheKey !== undefined
    const mark = (part: object) => {
      isCached ||= 'cache' in part && part.cache !== undefined
    }
    const file = (part: TurnPart) => {
      if (!('source' in part) || part.source.type !== 'inline') return
      say([part.type, part.source.base64], NEVER)
    }
    for (const { role, parts } of turns)
      for (const part of parts) {
        mark(part)
        if (part.type === 'text') texts[role] += part.text.replaceAll('\n', '')
        else if (part.type === 'tool_call') {
          order.set(part.id, order.size)
          say(['call', order.get(part.id), part.name, JSON.parse(part.input || '{}')], NEVER)
        } else if (part.type === 'tool_result') {
          const said = part.content.map((each) => (each.type === 'text' ? each.text : '')).join('')
          const isError = part.isError || said.startsWith('Error:')
          say(['result', order.get(part.callId), said.replace(/^Error:\s*/, ''), isError], NEVER)
          for (const each of part.content) file(each)
        } else file(part)
      }
    say(['texts', texts], NEVER)
    let isChoosing = false
    const { choice, tools } = offeredTools(conversation)
    for (const tool of tools) {
      mark(tool)
      if (tool.type === 'function' && isOneText(tool.schema)) say(['custom', fullName(tool)], NEVER)
      if (tool.type === 'function') {
        isChoosing = true
        const { name, description, schema, isStrict } = tool
        say(['tool', fullName(tool), description, schema], NEVER)
        if (isStrict) say(['strict', name], /^strict/)
      } else if (tool.type === 'custom') {
        // A function with one text, where the protocol has no such tool.
        isChoosing = true
        say(['custom', fullName(tool)], NEVER)
      } else if (tool.type === 'web_search' && choice !== 'none') {
        say(['search'], /search/)
        if (tool.allowedDomains.length > 0) say(['domains', tool.allowedDomains], /search|filters|domains/)
        if (tool.location !== null) say(['location', tool.location.country], /search|user_location/)
      }
    }
    if (isCached) say(['cache'], /cache/)
    // Among functions: where there are none, it says nothing, and `auto` says what is so anyway.
    if (toolChoice !== null && choice !== 'auto' && isChoosing)
      say(['choice', choice], new RegExp(`^(${escaped(toolChoice.field)}|tool_choice)`))
    for (const [key, setting] of Object.entries(settings)) {
      if (setting === undefined || key === 'cacheKey') continue
      if (key === 'singleCall' && !(isChoosing && choice !== 'none')) continue
      // The default of every model.
      if ((key === 'temperature' || key === 'topP') && setting.value === 1) continue
      const value =
        key === 'reasoning'
          ? leastIsNone(setting.value.depth)
          : key === 'format'
            ? schemaOf(setting.value)
            : setting.value
      say([key, value], new RegExp(`^${escaped(setting.field)}`))
    }
    return facts
  }

  const LEAST = ['minimal', 'low']

  /** Models that always reason have no less than the least effort. */
  const leastIsNone = (depth: ReasoningDepth): ReasoningDepth =>
    depth.type === 'effort' && LEAST.includes(depth.effort) ? { type: 'off' } : depth

  const schemaOf = (format: { type: string; schema?: unknown }) => [format.type, format.schema]

  const call = (protocol: ChatProtocol, body: Buffer): ChatCall => readBody(protocol, body.toString())

  function write(protocol: ChatProtocol, conversation: Conversation, dropped: DroppedFields): Buffer {
    const options = encodeOptions({ upstreamModel: MODELS[protocol] })
    return UPSTREAM_SIDES[protocol].write(conversation, chatWith(protocol, {}), options, dropped)
  }

  /** Writes the conversation as a request of the protocol, and reads that. */
  function through(protocol: ChatProtocol, conversation: Conversation, dropped: DroppedFields): Conversation {
    return CLIENT_SIDES[protocol].read(call(protocol, write(protocol, conversation, dropped)), dropped)
  }

  for (const [client, upstream] of PAIRS)
    t.test(`${client}, ${upstream}`, async (t) => {
      const property = fc.property(conversation, (given) => {
        const asked = through(client, given, new DroppedFields())
        const dropped = new DroppedFields()
        const between = through(upstream, asked, dropped)
        const back = factsOf(through(client, between, dropped))
        const { notes = [] } = dropped.all()
        for (const [fact, named] of factsOf(asked)) {
          // The mode `VALIDATED`, for all functions, says more than a client of the protocol may mean.
          if (back.has(fact) || (fact.startsWith('["strict"') && upstream === 'generate-content')) continue
          const all = [named, ...[...factsOf(between)].flatMap(([what, by]) => (what === fact ? [by] : []))]
          if (!notes.some((note) => all.some((each) => each.test(note))))
            throw new Error(`lost: ${fact}; named: ${notes.join('; ')}`)
        }
      })
      const { failed, errorInstance, numRuns } = fc.check(property, { seed: SEED, numRuns: RUNS })
      t.notOk(failed, `${numRuns} runs: ${(errorInstance as Error | null)?.message}`)
    })
})

t.test('streams split at every byte', async (t) => {
  const RECORDED: Readonly<Record<ChatProtocol, ReadonlyMap<string, Buffer>>> = {
    'chat-completions': STREAMS,
    messages: MESSAGES_STREAMS,
    'generate-content': EVENT_STREAMS,
    responses: RESPONSES_STREAMS,
  }
  /** Ids that are made up as an answer goes, replaced by the order of their first appearance. */
  function withoutChance(output: Buffer): string {
    const known = new Map<string, string>()
    return output.toString().replaceAll(/01[0-9A-HJKMNP-TV-Z]{24}/g, (id) => {
      if (!known.has(id)) known.set(id, `made-up-${known.size}`)
      return known.get(id)!
    })
  }

  for (const [client, upstream] of PAIRS) {
    const adapter = translation(
      [client, CLIENT_SIDES[client]],
      [upstream, UPSTREAM_SIDES[upstream]],
      () => CREATED_MS,
    )
    const asked = { ...chatWith(client, {}), stream: true }
    for (const [name, stream] of RECORDED[upstream])
      t.test(`${client} to ${upstream}: ${name}`, async (t) => {
        const run = (cuts: readonly number[]) =>
          withoutChance(outputInPieces(adapter.openStream(asked), stream, cuts))
        const whole = run([])
        checkEverySplit(t, stream, { seed: SEED, pairs: 10, gap: CUT_GAP }, (cuts) => {
          const isSame = run(cuts) === whole
          if (!isSame) t.fail(`cut at ${cuts.slice(0, 3)}`)
          return isSame
        })
      })
  }
})
