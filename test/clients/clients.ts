/** The clients as data: what each is called, speaks and is driven by. */
import type { ChatProtocol } from '../end-to-end/protocols/support.ts'
import { PYTHON_SDKS } from '../support/python-sdks.ts'

export interface Client {
  /** Letters, digits and hyphens. */
  readonly id: string
  /** Its package; the table shows the version. */
  readonly package: string
  readonly protocol: ChatProtocol
  /** The program in `drivers` that runs its conversations. */
  readonly driver: string
  /** The packages of Python that it needs, at their versions, its own among them; it is JavaScript by default. */
  readonly python?: readonly string[]
  /** It runs in the quick part too. */
  readonly isQuick: boolean
}

const CHAT = 'chat-completions'

const quick = (id: string, name: string, protocol: ChatProtocol, driver: string): Client => ({
  ...{ id, package: name, protocol, driver, isQuick: true },
})
const vendor = (id: string, name: string, protocol: ChatProtocol): Client => ({
  ...quick(id, name, protocol, 'vendors.py'),
  python: PYTHON_SDKS,
})

export const CLIENTS: readonly Client[] = [
  quick('openai-chat', 'openai', CHAT, 'openai.js'),
  quick('openai-responses', 'openai', 'responses', 'openai.js'),
  quick('anthropic', '@anthropic-ai/sdk', 'messages', 'anthropic.js'),
  quick('google', '@google/genai', 'generate-content', 'google.js'),
  quick('ai-openai-chat', '@ai-sdk/openai', CHAT, 'ai.js'),
  quick('ai-openai-responses', '@ai-sdk/openai', 'responses', 'ai.js'),
  quick('ai-anthropic', '@ai-sdk/anthropic', 'messages', 'ai.js'),
  quick('ai-google', '@ai-sdk/google', 'generate-content', 'ai.js'),
  quick('ai-openai-compatible', '@ai-sdk/openai-compatible', CHAT, 'ai.js'),
  quick('ai-openrouter', '@openrouter/ai-sdk-provider', CHAT, 'ai.js'),
  vendor('python-openai-chat', 'openai', CHAT),
  vendor('python-openai-responses', 'openai', 'responses'),
  vendor('python-anthropic', 'anthropic', 'messages'),
  vendor('python-google', 'google-genai', 'generate-content'),
]
