/** The scenarios as data. A prompt tells the simulated provider how to answer, so that a client needs to know nothing. */
import { PNG_URI } from '../end-to-end/sdk/support.ts'

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
  /** Coding agents meet it too. */
  readonly isForAgents?: true
  /** The upstream speaks another protocol. */
  readonly isTranslated?: true
}

const LARGE_TEXT = 'A long text. '.repeat(500_000 / 13)
const ask = (words: string, directives: string): string => `${words} [simulate: ${directives}]`

/**
 * @param client the id of the client: each meets a full upstream once
 * @param pauseMs how long the upstream is silent in the scenarios of silence
 */
export function listScenarios(client: string, pauseMs: number): readonly Scenario[] {
  // Answers of two protocols are compared: the words are drawn by the seed alone.
  const silent = ask('Take your time.', `ttft=${pauseMs}, pause=${pauseMs}, tokens=40, seed=7`)
  const busy = `fault=status:429, retry_after=1, times=1, tag=${client}, tokens=20`
  const tools = ask('Look around.', 'tool_calls=4, seed=7')
  const loop = { prompt: tools, tools: 4, expect: { turns: 2, calls: 4 }, isForAgents: true } as const
  const once = { expect: { turns: 1 } }
  const refused = { expect: { turns: 1, status: 429 }, isForAgents: true } as const
  const pauses = { prompt: silent, ...once, isForAgents: true } as const
  return [
    { id: 'tools', title: 'tools', ...loop },
    { id: 'image', title: 'image', prompt: ask('What is this?', 'tokens=20'), image: PNG_URI, ...once },
    { id: 'pause', title: 'pauses', ...pauses },
    { id: 'busy', title: '429', prompt: ask('Hello!', busy), ...refused },
    {
      ...{ id: 'leave', title: 'hang up', prompt: ask('Tell me all.', 'tokens=2000, tps=50') },
      ...{ leaveAfterCharacters: 100, ...once },
    },
    { id: 'large', title: '500 KB', prompt: ask(LARGE_TEXT, 'tokens=20'), ...once, isForAgents: true },
    {
      ...{ id: 'many-tools', title: '200 tools', prompt: ask('Choose.', 'tool_calls=1, seed=7') },
      ...{ tools: 200, expect: { turns: 2, calls: 1 } },
    },
    {
      ...{ id: 'second-turn', title: 'second turn', prompt: ask('Think.', 'reasoning=8, tokens=20') },
      ...{ followUp: 'And now?', expect: { turns: 2 } },
    },
    { id: 'tools-translated', title: 'tools, translated', ...loop, isTranslated: true },
    { id: 'pause-translated', title: 'pauses, translated', ...pauses, isTranslated: true },
  ]
}
