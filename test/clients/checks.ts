/** What must hold of each client in each scenario: it sees what it sees directly, byte for byte, and pays what was used. */
import { isDeepStrictEqual } from 'node:util'
import { type LooseObject, toFields } from '../../src/protocols/loose.ts'
import { COMMENT } from '../../src/protocols/sse/comment.ts'
import { CHAT_PROTOCOLS, type ChatProtocol } from '../end-to-end/protocols/support.ts'
import type { LogJson } from '../support/service.ts'
import type { Client } from './clients.ts'
import type { Outcome, Passage, Seen } from './matrix.ts'
import type { Exchange } from './recorder.ts'
import { FIRST_ANSWER, type Scenario } from './scenarios.ts'

/** What the gateway adds to a chat-completions stream whose client does not ask for usage. */
const USAGE_OPTION = '"stream_options":{"include_usage":true},'
const USAGE_CHUNK = /data: \{[^\n]*"choices":\[\],[^\n]*"usage":\{[^\n]*\n\n/
/** What fills a silence where clients bear no comment. */
const FILLER = 'data: {}\n\n'
/** They leave no row. */
const FREE = /count_?tokens/i
const RETRY_AFTER = 'retry-after'
/** Of a note. */
const MOST_CHARACTERS = 240
/** So exactly are waits told that two runs say the same. */
const WAIT_STEP_SECONDS = 5

const readAnswer = (exchange: Exchange): string => Buffer.concat(exchange.response).toString('latin1')

/** Returns the attempts of a call that passed through the service. */
const findAttempts = (call: Exchange, upstream: readonly Exchange[]): readonly Exchange[] =>
  upstream.filter(
    ({ requestHeaders }) => requestHeaders['x-request-id'] === call.responseHeaders['x-gateway-trace'],
  )

const isMessage = ({ isFree }: Exchange): boolean => isFree !== undefined
/** Requests on a WebSocket name no row, nor do those whose client did not wait for a head. */
const isUnnamed = (call: Exchange): boolean => isMessage(call) || call.status === 0

/** Returns what is wrong with a scenario; nothing if all is as it must be. */
export function checkOutcome(outcome: Outcome, upstream: readonly Exchange[]): string[] {
  const { client, direct, through, scenario } = outcome
  const wrong = [...checkSeen(outcome)]
  const { exchanges } = through.recorder
  if (client.agent !== undefined) wrong.push(...checkAgent(outcome, upstream))
  else if (exchanges.length !== direct.recorder.exchanges.length)
    wrong.push(`${exchanges.length} requests, directly ${direct.recorder.exchanges.length}`)
  for (const call of exchanges) {
    if (isMessage(call)) continue
    const attempts = findAttempts(call, upstream)
    if (attempts.length === 1 && scenario.foreign === undefined)
      wrong.push(...checkBytes(outcome, call, attempts[0]!))
    // The service itself answers some requests.
    if (attempts.length > 1 || (attempts.length === 0 && call.status >= 400))
      wrong.push(
        `${call.path} reached the upstream ${attempts.length} times: ${call.status} ${readAnswer(call).slice(0, 200)}`,
      )
    if (client.protocol === 'generate-content' && readAnswer(call).includes(COMMENT.toString()))
      wrong.push('a comment came')
  }
  return wrong
}

/** What a request of an agent must have in a scenario that is about it. */
const TRACES: readonly { readonly isMeant: (scenario: Scenario) => boolean; readonly trace: RegExp }[] = [
  { isMeant: ({ tools = 0 }) => tools > 100, trace: /tool_200/ },
  { isMeant: ({ image }) => image !== undefined, trace: /image\/(png|jpeg|webp)/ },
  { isMeant: ({ followUp }) => followUp !== undefined, trace: new RegExp(FIRST_ANSWER) },
]

/** Checks that an agent did what its scenario is about. */
function* checkAgent(outcome: Outcome, upstream: readonly Exchange[]): Generator<string> {
  const { client, scenario, through } = outcome
  if (findDirectFailure(outcome) !== null) return
  if (client.usesSocket && !through.recorder.exchanges.some(isMessage))
    yield 'no request came over a WebSocket'
  const turns = listBilled([outcome], upstream).length
  if (turns < scenario.expect.turns) yield `${turns} turns of the model instead of ${scenario.expect.turns}`
  const bodies = through.recorder.exchanges.map(({ requestBody }) => requestBody.toString())
  for (const { isMeant, trace } of TRACES)
    if (isMeant(scenario) && !bodies.some((body) => trace.test(body))) yield `no request has ${trace}`
}

/** Whether the silence of a call was filled. */
export const isFilled = (call: Exchange): boolean => {
  const answer = readAnswer(call)
  return answer.includes(COMMENT.toString()) || answer.includes(FILLER)
}

/** Returns how a client failed in a scenario; null if it did not. */
function findFailure({ agent }: Client, { expect }: Scenario, passage: Passage): string | null {
  const { turns, error } = passage.seen
  if (agent !== undefined)
    return error === null && turns.every(({ text }) => text !== '') ? null : describe(passage)
  const calls = turns[0]?.calls.length ?? 0
  const isExpected = error === null ? calls === (expect.calls ?? 0) : error.status === expect.status
  return turns.length === expect.turns && isExpected ? null : describe(passage)
}

/** Returns how a client fails in a scenario without this service; null if it does not, or translation helps it. */
export function findDirectFailure({ client, scenario, direct, through }: Outcome): string | null {
  if (scenario.foreign !== undefined && findFailure(client, scenario, through) === null) return null
  return findFailure(client, scenario, direct)
}

function* checkSeen(outcome: Outcome): Generator<string> {
  const { client, scenario, direct, through } = outcome
  // What fails in the upstream's own protocol may work in another.
  if (scenario.foreign !== undefined && findFailure(client, scenario, direct) !== null) return
  // The upstream draws other words in another protocol, and for a client that makes up ids.
  const areSame =
    scenario.foreign === undefined && isDeepStrictEqual(listRequests(direct), listRequests(through))
  const isFirstSame = scenario.foreign !== undefined && client.agent === undefined
  const read = ({ seen }: Passage): unknown => (areSame ? seen : withoutWords(seen, isFirstSame))
  if (!isDeepStrictEqual(read(direct), read(through)))
    yield `${describe(through)}; directly: ${describe(direct)}`
}

const listRequests = ({ recorder }: Passage): Buffer[] =>
  recorder.exchanges.map(({ requestBody }) => requestBody)

/** Cuts a text between two words. */
function shorten(text: string): string {
  const plain = text.replaceAll(/\s+/g, ' ').trim()
  return plain.length <= MOST_CHARACTERS ? plain : `${plain.slice(0, MOST_CHARACTERS).replace(/ \S*$/, '')} …`
}

/** Describes the result of a client. Each client reports a late response head in its own words. */
function describe({ seen: { turns, error, hasLeft }, recorder: { exchanges } }: Passage): string {
  const waits = exchanges.flatMap(({ leftAfterMs = [] }) => leftAfterMs)
  if (error !== null && waits.length > 0) {
    const seconds = WAIT_STEP_SECONDS * Math.round(Math.max(...waits) / (WAIT_STEP_SECONDS * 1000))
    return `it gives up after ${seconds} s without a head${exchanges.length > 1 ? ', and calls again' : ''}`
  }
  if (error !== null) {
    const name = error.name === 'Error' ? [] : [error.name]
    return shorten([...name, error.status ?? '', error.message].join(' '))
  }
  return (
    turns.map(({ text, calls }) => `${text.length} characters and ${calls.length} calls`).join(', then ') +
    (hasLeft ? ', then left' : '')
  )
}

/** Leaves of the words only whether there are any, but for those of the first turn if it is the same. */
const withoutWords = ({ turns, error, hasLeft }: Seen, isFirstSame: boolean): unknown => ({
  turns: turns.map(({ text, calls }, at) => ({
    text: isFirstSame && at === 0 ? text : text !== '',
    calls,
  })),
  hasLeft,
  error: error?.name,
})

function* checkBytes({ upstream }: Outcome, call: Exchange, attempt: Exchange): Generator<string> {
  const isChat = upstream === 'chat-completions'
  const body = attempt.requestBody.toString('latin1')
  const request = call.requestBody.toString('latin1')
  const asksForUsage = request.includes('"include_usage":true')
  if (body !== request && !(isChat && !asksForUsage && body.replace(USAGE_OPTION, '') === request))
    yield `the request to ${call.path} was changed`
  if (attempt.status !== call.status) yield `status ${call.status} instead of ${attempt.status}`
  if (attempt.responseHeaders[RETRY_AFTER] !== call.responseHeaders[RETRY_AFTER])
    yield `${RETRY_AFTER}: ${call.responseHeaders[RETRY_AFTER]} instead of ${attempt.responseHeaders[RETRY_AFTER]}`
  // The service builds a new error with the upstream's message.
  if (attempt.status >= 400) return
  const [whole, given] = [readAnswer(attempt), readAnswer(call)]
  const answer = isChat && !asksForUsage ? whole.replace(USAGE_CHUNK, '') : whole
  const heard = upstream === 'generate-content' ? given : given.replaceAll(COMMENT.toString(), '')
  if (call.isComplete ? answer !== heard : !answer.startsWith(heard))
    yield `the answer of ${call.path} was changed`
}

/** Returns the calls that have a row: those that reached the upstream. */
export const listBilled = (outcomes: readonly Outcome[], upstream: readonly Exchange[]) =>
  outcomes.flatMap((outcome) =>
    outcome.through.recorder.exchanges
      .filter((call) =>
        isUnnamed(call)
          ? !call.isFree && !FREE.test(call.path)
          : !FREE.test(call.path) && findAttempts(call, upstream).length > 0,
      )
      .map((call) => ({ call, outcome })),
  )

interface Reported {
  readonly attempt: Exchange
  readonly protocol: ChatProtocol
  readonly expected: readonly string[]
}

/** Returns what is wrong with the rows of a client's calls. */
export function checkRows(
  outcomes: readonly Outcome[],
  rows: readonly LogJson[],
  upstream: readonly Exchange[],
): string[] {
  const calls = listBilled(outcomes, upstream)
  const wrong = rows.length === calls.length ? [] : [`${rows.length} rows for ${calls.length} calls`]
  const named = new Set<LogJson>()
  const checkRow = (id: string, row: LogJson, { attempt, expected, protocol }: Reported): void => {
    if (!expected.includes(row.status)) wrong.push(`${id}: the row is ${row.status} instead of ${expected}`)
    if (row.status !== 'success') return
    const reported = readUsage(protocol, readAnswer(attempt))
    const charged = { input: row.input_tokens, output: row.output_tokens }
    if (!isDeepStrictEqual(charged, reported))
      wrong.push(`${id}: ${JSON.stringify(charged)} is charged, ${JSON.stringify(reported)} is reported`)
  }
  for (const { call, outcome } of calls.filter(({ call }) => !isUnnamed(call))) {
    const { scenario, through, upstream: protocol } = outcome
    const row = rows.find(({ request_id: id }) => id === call.responseHeaders['x-gateway-trace'])
    const [attempt] = findAttempts(call, upstream)
    if (row === undefined || attempt === undefined) {
      wrong.push(`${scenario.id}: no row`)
      continue
    }
    named.add(row)
    checkRow(scenario.id, row, { attempt, protocol, expected: listStatuses(call, through.seen.hasLeft) })
  }
  const unnamed = calls.filter(({ call }) => isUnnamed(call))
  const expected = unnamed.flatMap(({ call, outcome }) => listStatuses(call, outcome.through.seen.hasLeft))
  for (const row of rows.filter((one) => !named.has(one))) {
    const attempt = upstream.find(({ requestHeaders }) => requestHeaders['x-request-id'] === row.request_id)
    const protocol = CHAT_PROTOCOLS.find((one) => row.model?.startsWith(`sim-vision-${one}`))
    if (attempt === undefined || protocol === undefined) wrong.push(`a row has no call: ${row.request_id}`)
    else checkRow(row.model!, row, { attempt, protocol, expected })
  }
  return wrong
}

/** Returns what the row of a call may say. A client may close the connection once it has the last event. */
function listStatuses({ status, isComplete }: Exchange, hasLeft: boolean): readonly string[] {
  if (status === 0) return ['interrupted']
  if (status !== 200) return ['error', 'rejected']
  if (isComplete) return ['success']
  return hasLeft ? ['interrupted'] : ['success', 'interrupted']
}

interface Usage {
  readonly input: number
  readonly output: number
}

/** Returns what an upstream reports in its answer, in one piece or as events. */
function readUsage(protocol: ChatProtocol, answer: string): Usage {
  const texts = answer.startsWith('{')
    ? [answer]
    : [...answer.matchAll(/^data: (\{.*)$/gm)].map(([, t]) => t!)
  const events = texts.map((text) => toFields(JSON.parse(text)))
  const last = (pick: (usage: LooseObject) => unknown): number =>
    Number(events.map((event) => pick(findUsage(event))).findLast((value) => value !== undefined) ?? 0)
  switch (protocol) {
    case 'chat-completions':
      return { input: last((usage) => usage.prompt_tokens), output: last((usage) => usage.completion_tokens) }
    case 'responses':
    case 'messages':
      return { input: last((usage) => usage.input_tokens), output: last((usage) => usage.output_tokens) }
    case 'generate-content':
      return {
        input: last((usage) => usage.promptTokenCount),
        output: last(
          ({ candidatesTokenCount: said, thoughtsTokenCount: thought }) =>
            said && Number(said) + Number(thought ?? 0),
        ),
      }
  }
}

/** Returns the usage in an answer or an event of any protocol. */
const findUsage = ({ response, message, usage, usageMetadata }: LooseObject): LooseObject =>
  toFields(toFields(response).usage ?? toFields(message).usage ?? usage ?? usageMetadata)
