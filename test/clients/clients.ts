/** The clients as data: what each is called, speaks and is driven by. */

import { CLIENTS as CONNECTED } from '../../schemas/clients.ts'
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
  /** It is a coding agent, a program that calls its own tools and prints its last words, with these settings of `connect`. */
  readonly agent?: keyof typeof CONNECTED
  /** It calls over a WebSocket where it can. */
  readonly usesSocket?: true
  /** What it cannot do at all, by the title of the scenario, and why. */
  readonly cannot?: Readonly<Record<string, string>>
  /** It runs in the quick part too. */
  readonly isQuick: boolean
}

const CHAT = 'chat-completions'

const quick = (id: string, name: string, protocol: ChatProtocol, driver: string): Client => ({
  ...{ id, package: name, protocol, driver, isQuick: true },
})
/** In the full run only. */
const full = (id: string, name: string, protocol: ChatProtocol, driver: string): Client => ({
  ...quick(id, name, protocol, driver),
  isQuick: false,
})
const agent = (id: string, name: string, driver = 'agents.js', settings = id): Client => ({
  ...full(id, name, CONNECTED[settings]!.protocol, driver),
  agent: settings,
})
const vendor = (id: string, name: string, protocol: ChatProtocol): Client => ({
  ...quick(id, name, protocol, 'vendors.py'),
  python: PYTHON_SDKS,
})

/** Never 1.107.0, a compromised release. */
const LITELLM = { python: ['litellm==1.110.2', 'tenacity==9.1.4'] }
const LANGCHAIN = { python: ['langchain-openai==1.7.4'] }

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
  full('generative-ai', '@google/generative-ai', 'generate-content', 'generative-ai.js'),
  full('langchain-openai-chat', '@langchain/openai', CHAT, 'langchain.js'),
  full('langchain-openai-responses', '@langchain/openai', 'responses', 'langchain.js'),
  full('langchain-anthropic', '@langchain/anthropic', 'messages', 'langchain.js'),
  full('langchain-google', '@langchain/google-genai', 'generate-content', 'langchain.js'),
  full('openai-agents-chat', '@openai/agents', CHAT, 'openai-agents.js'),
  full('openai-agents-responses', '@openai/agents', 'responses', 'openai-agents.js'),
  full('llamaindex', 'llamaindex', CHAT, 'llamaindex.js'),
  vendor('python-openai-chat', 'openai', CHAT),
  vendor('python-openai-responses', 'openai', 'responses'),
  vendor('python-anthropic', 'anthropic', 'messages'),
  vendor('python-google', 'google-genai', 'generate-content'),
  { ...full('litellm-chat', 'litellm', CHAT, 'litellm_client.py'), ...LITELLM },
  { ...full('litellm-messages', 'litellm', 'messages', 'litellm_client.py'), ...LITELLM },
  { ...full('litellm-google', 'litellm', 'generate-content', 'litellm_client.py'), ...LITELLM },
  { ...full('python-langchain-chat', 'langchain-openai', CHAT, 'langchain_client.py'), ...LANGCHAIN },
  {
    ...full('python-langchain-responses', 'langchain-openai', 'responses', 'langchain_client.py'),
    ...LANGCHAIN,
  },
  agent('claude', '@anthropic-ai/claude-code'),
  agent('claude-agent-sdk', '@anthropic-ai/claude-agent-sdk', 'agent-sdk.js', 'claude'),
  { ...agent('codex', '@openai/codex'), usesSocket: true },
  agent('gemini', '@google/gemini-cli'),
  agent('qwen', '@qwen-code/qwen-code'),
  agent('opencode', 'opencode-ai'),
  {
    ...agent('continue', '@continuedev/cli'),
    cannot: { image: 'without its screen it takes no pictures' },
  },
  {
    ...agent('aider', 'aider-chat'),
    python: ['aider-chat==0.86.2'],
    cannot: Object.fromEntries(
      ['tools', '200 tools', 'tools, translated'].map((title) => [title, 'it offers no tools to the model']),
    ),
  },
]
