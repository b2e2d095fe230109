/** The scenarios as data. A prompt tells the simulated provider how to answer, so that a client needs to know nothing. */
import { CHAT_PROTOCOLS, type ChatProtocol } from '../end-to-end/protocols/support.ts'
import { PNG_URI } from '../end-to-end/sdk/support.ts'
import type { Client } from './clients.ts'

export interface Scenario {
  readonly id: string
  /** The head of its column. */
  readonly title: string
  readonly prompt: string
  /** How many tools are offered. */
  readonly tools?: number
  readonly image?: string
  /** What the user says after the answer. */
  readonly followUp?: string
  /** The client hangs up when it has read so much. */
  readonly leaveAfterCharacters?: number
  /** The turns of the model, its calls in the first (none by default), and the error that a client may raise. */
  readonly expect: { readonly turns: number; readonly calls?: number; readonly status?: number }
  /** A coding agent has to change a file, in several turns with its tools. */
  readonly hasTask?: true
  /** What the upstream speaks where that is another protocol than the client's. */
  readonly foreign?: ChatProtocol
  /** The scenario without translation. */
  readonly natural?: string
}

/** One of them for each. A task is translated to all. */
const FOREIGN: Readonly<Record<ChatProtocol, ChatProtocol>> = {
  'chat-completions': 'messages',
  messages: 'chat-completions',
  responses: 'messages',
  'generate-content': 'chat-completions',
}
/** A second turn has it in its history. */
export const FIRST_ANSWER = 'The first answer.'

const LARGE_TEXT = 'A long text. '.repeat(500_000 / 13)
const ask = (words: string, directives: string): string => `${words} [simulate: ${directives}]`

/** @param pausesMs how long the upstream is silent in the scenarios of silence */
export function listScenarios(client: Client, pausesMs: readonly number[]): readonly Scenario[] {
  const { id, protocol, agent, cannot = {} } = client
  // Each client meets a full upstream once.
  const busy = `fault=status:429, retry_after=1, times=1, tag=${id}, tokens=20`
  const tools = ask('Look around.', 'tool_calls=4, seed=7')
  const loop = { prompt: tools, tools: 4, expect: { turns: 2, calls: 4 } }
  const once = { expect: { turns: 1 } }
  const refused = { expect: { turns: 1, status: 429 } }
  const pauses = pausesMs.map((ms) => ({
    ...{ id: `pause-${ms}`, title: 'pauses', ...once },
    // Answers of two protocols are compared: the words are drawn by the seed alone.
    prompt: ask('Take your time.', `ttft=${ms}, pause=${ms}, tokens=40, seed=7`),
  }))
  const translate = (scenario: Scenario, foreign = FOREIGN[protocol]): Scenario => ({
    ...{ ...scenario, id: `${scenario.id}-by-${foreign}`, title: `${scenario.title}, translated` },
    ...{ foreign, natural: scenario.id },
  })
  const task: Scenario = { id: 'task', title: 'task', prompt: '', hasTask: true, ...once }
  const natural: Scenario[] = [
    { id: 'tools', title: 'tools', ...loop },
    { id: 'image', title: 'image', prompt: ask('What is this?', 'tokens=20'), image: PNG_URI, ...once },
    ...pauses,
    { id: 'busy', title: '429', prompt: ask('Hello!', busy), ...refused },
    {
      ...{ id: 'leave', title: 'hang up', prompt: ask('Tell me all.', 'tokens=2000, tps=50') },
      ...{ leaveAfterCharacters: 100, ...once },
    },
    { id: 'large', title: '500 KB', prompt: ask(LARGE_TEXT, 'tokens=20'), ...once },
    {
      ...{ id: 'many-tools', title: '200 tools', prompt: ask('Choose.', 'tool_calls=1, seed=7') },
      ...{ tools: 200, expect: { turns: 2, calls: 1 } },
    },
    {
      ...{ id: 'second-turn', title: 'second turn', followUp: 'And now?', expect: { turns: 2 } },
      prompt: ask('Think.', `reasoning=8, text=${encodeURIComponent(FIRST_ANSWER)}`),
    },
  ]
  const all = [
    ...natural,
    ...[natural[0]!, ...pauses].map((scenario) => translate(scenario)),
    ...(agent === undefined ? [] : [task]),
    ...(agent === undefined ? [] : CHAT_PROTOCOLS.filter((other) => other !== protocol)).map((other) =>
      translate(task, other),
    ),
  ]
  return all.filter(({ title }) => cannot[title] === undefined)
}
