import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { createOpenRouter } from '@openrouter/ai-sdk-provider'
import { jsonSchema, streamText, tool } from 'ai'
import { drive, TOOL_SCHEMA, toolNames } from './driver.js'

const v1 = (baseUrl) => `${baseUrl}/v1`

/** A model of each provider, as its page sets it up. */
const PROVIDERS = {
  '@ai-sdk/openai': ({ baseUrl, key, model }, protocol) => {
    const openai = createOpenAI({ baseURL: v1(baseUrl), apiKey: key })
    return protocol === 'responses' ? openai(model) : openai.chat(model)
  },
  '@ai-sdk/anthropic': ({ baseUrl, key, model }) =>
    createAnthropic({ baseURL: v1(baseUrl), apiKey: key })(model),
  '@ai-sdk/google': ({ baseUrl, key, model }) =>
    createGoogleGenerativeAI({ baseURL: `${baseUrl}/v1beta`, apiKey: key })(model),
  '@ai-sdk/openai-compatible': ({ baseUrl, key, model }) =>
    createOpenAICompatible({ name: 'gateway', baseURL: v1(baseUrl), apiKey: key })(model),
  '@openrouter/ai-sdk-provider': ({ baseUrl, key, model }) =>
    createOpenRouter({ baseURL: v1(baseUrl), apiKey: key })(model),
}

const openWith = (protocol, name) => (given) => {
  const model = PROVIDERS[name](given, protocol)
  const messages = []
  const tools = Object.fromEntries(
    toolNames(given.tools).map((name) => [
      name,
      tool({ description: `Finds ${name}.`, inputSchema: jsonSchema(TOOL_SCHEMA) }),
    ]),
  )
  return {
    say(words, image) {
      const picture = image === null ? [] : [{ type: 'file', mediaType: 'image/png', data: image }]
      messages.push({ role: 'user', content: [{ type: 'text', text: words }, ...picture] })
    },
    answer(calls) {
      const content = calls.map(({ id, name, result }) => ({
        ...{ type: 'tool-result', toolCallId: id, toolName: name, output: { type: 'text', value: result } },
      }))
      messages.push({ role: 'tool', content })
    },
    async *turn() {
      const leaving = new AbortController()
      const result = streamText({ model, messages, tools, abortSignal: leaving.signal, onError() {} })
      try {
        for await (const part of result.stream) {
          if (part.type === 'text-delta') yield part.text
          if (part.type === 'error') throw part.error
        }
      } finally {
        leaving.abort()
      }
      messages.push(...(await result.responseMessages))
      return (await result.toolCalls).map(({ toolCallId: id, toolName: name, input }) => ({
        id,
        name,
        input,
      }))
    },
  }
}

await drive(openWith)
