/** First calls of a model with each SDK, ready to paste. Without a key they read it from the environment. */

import type { ChatProtocol } from '../../../../schemas/config/catalog.ts'
import { ROUTES } from '../../../../schemas/routes.ts'
import { printCurl } from '../../curl.ts'

export interface Snippet {
  readonly id: string
  readonly label: string
  /** Default: the label. */
  readonly title?: string
  readonly code: string
}

/** Where a snippet sends a call, and with which key: without one it reads the environment. */
interface Access {
  readonly origin: string
  readonly key?: string | undefined
}

const makeCurl = ({ origin, key }: Access, path: string, body: object): Snippet => ({
  id: 'curl',
  label: 'curl',
  code: printCurl(origin, path, body, { key }),
})

const printJsKey = ({ key }: Access): string => (key === undefined ? 'process.env.TOLLGATE_KEY' : `'${key}'`)
const printPythonKey = ({ key }: Access): string =>
  key === undefined ? 'os.environ["TOLLGATE_KEY"]' : `"${key}"`

const HELLO = 'Hello!'

const chatCompletions = (access: Access, model: string): Snippet[] => [
  {
    id: 'openai-js',
    label: 'TypeScript',
    code: `import OpenAI from 'openai'

const client = new OpenAI({ baseURL: '${access.origin}/v1', apiKey: ${printJsKey(access)} })
const stream = await client.chat.completions.create({
  model: '${model}',
  stream: true,
  messages: [{ role: 'user', content: '${HELLO}' }],
})
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? '')`,
  },
  {
    id: 'openai-py',
    label: 'Python',
    code: `${access.key === undefined ? 'import os\n' : ''}from openai import OpenAI

client = OpenAI(base_url="${access.origin}/v1", api_key=${printPythonKey(access)})
stream = client.chat.completions.create(
    model="${model}",
    stream=True,
    messages=[{"role": "user", "content": "${HELLO}"}],
)
for chunk in stream:
    print(chunk.choices[0].delta.content or "" if chunk.choices else "", end="")`,
  },
]

const messages = (access: Access, model: string): Snippet => ({
  id: 'anthropic-js',
  label: '@anthropic-ai/sdk',
  code: `import Anthropic from '@anthropic-ai/sdk'

const client = new Anthropic({ baseURL: '${access.origin}', apiKey: ${printJsKey(access)} })
const message = await client.messages.create({
  model: '${model}',
  max_tokens: 1024,
  messages: [{ role: 'user', content: '${HELLO}' }],
})
console.log(message.content)`,
})

const generateContent = (access: Access, model: string): Snippet => ({
  id: 'genai-js',
  label: '@google/genai',
  code: `import { GoogleGenAI } from '@google/genai'

const client = new GoogleGenAI({
  apiKey: ${printJsKey(access)},
  httpOptions: { baseUrl: '${access.origin}' },
})
const answer = await client.models.generateContent({ model: '${model}', contents: '${HELLO}' })
console.log(answer.text)`,
})

const responses = (access: Access, model: string): Snippet => ({
  id: 'responses-js',
  label: 'openai responses (JS)',
  code: `import OpenAI from 'openai'

const client = new OpenAI({ baseURL: '${access.origin}/v1', apiKey: ${printJsKey(access)} })
const response = await client.responses.create({ model: '${model}', input: '${HELLO}' })
console.log(response.output_text)`,
})

const WITH_SDKS: Readonly<
  Record<ChatProtocol, (access: Access, model: string) => Snippet | readonly Snippet[]>
> = {
  'chat-completions': chatCompletions,
  messages,
  'generate-content': generateContent,
  responses,
}

/** Paths and first bodies of the endpoints besides chat. */
const OTHERS: Readonly<Record<string, readonly [path: string, body: object]>> = {
  images_generations: [ROUTES.makeImages[1], { prompt: 'A fox in the snow' }],
  videos_generations: [ROUTES.makeVideo[1], { prompt: 'A fox runs through the snow', duration: 5 }],
  music_generations: [ROUTES.makeMusic[1], { prompt: 'A slow waltz for piano' }],
  audio_speech: [ROUTES.makeSpeech[1], { input: HELLO, voice: 'alloy' }],
  embeddings: [ROUTES.createEmbedding[1], { input: HELLO }],
  rerank: [ROUTES.rerank[1], { query: HELLO, documents: ['Good morning', 'Goodbye'] }],
}

interface SnippetModel {
  readonly id: string
  readonly endpoint_type: string | null
  readonly supported_protocols: readonly ChatProtocol[]
  readonly translated_protocols: readonly ChatProtocol[]
}

/** Returns the protocols in which clients reach the model, the native ones first. */
export const listProtocols = ({
  supported_protocols,
  translated_protocols,
}: SnippetModel): readonly ChatProtocol[] => [...supported_protocols, ...translated_protocols]

/** Returns the snippets of a model, the shortest first; none for an endpoint that needs more than a prompt. */
export function makeSnippets(model: SnippetModel, access: Access): readonly Snippet[] {
  if (model.endpoint_type !== null) {
    const first = OTHERS[model.endpoint_type]
    return first === undefined ? [] : [makeCurl(access, first[0], { model: model.id, ...first[1] })]
  }
  const body = { model: model.id, messages: [{ role: 'user', content: HELLO }] }
  const protocols = new Set<ChatProtocol>(['chat-completions', ...listProtocols(model)])
  return [
    makeCurl(access, ROUTES.createChatCompletion[1], body),
    ...[...protocols].flatMap((protocol) => WITH_SDKS[protocol](access, model.id)),
  ]
}
