import { ChatAnthropic } from '@langchain/anthropic'
import { HumanMessage, ToolMessage } from '@langchain/core/messages'
import { ChatGoogleGenerativeAI } from '@langchain/google-genai'
import { ChatOpenAI } from '@langchain/openai'
import { drive, TOOL_SCHEMA, toolNames } from './driver.js'

const PROVIDERS = {
  '@langchain/openai': ({ baseUrl, key: apiKey, model }, protocol) =>
    new ChatOpenAI({
      ...{ model, apiKey, configuration: { baseURL: `${baseUrl}/v1` } },
      useResponsesApi: protocol === 'responses',
    }),
  '@langchain/anthropic': ({ baseUrl, key: apiKey, model }) =>
    new ChatAnthropic({ model, apiKey, anthropicApiUrl: baseUrl }),
  '@langchain/google-genai': ({ baseUrl, key: apiKey, model }) =>
    new ChatGoogleGenerativeAI({ model, apiKey, baseUrl }),
}

const openWith = (protocol, name) => (given) => {
  const chat = PROVIDERS[name](given, protocol)
  const tools = toolNames(given.tools).map((name) => ({
    type: 'function',
    function: { name, description: `Finds ${name}.`, parameters: TOOL_SCHEMA },
  }))
  const model = tools.length > 0 ? chat.bindTools(tools) : chat
  const messages = []
  return {
    say(words, image) {
      const picture = image === null ? [] : [{ type: 'image_url', image_url: { url: image } }]
      messages.push(new HumanMessage({ content: [{ type: 'text', text: words }, ...picture] }))
    },
    answer(calls) {
      for (const { id, name, result } of calls)
        messages.push(new ToolMessage({ tool_call_id: id, name, content: result }))
    },
    async *turn() {
      const leaving = new AbortController()
      let whole
      try {
        for await (const chunk of await model.stream(messages, { signal: leaving.signal })) {
          whole = whole === undefined ? chunk : whole.concat(chunk)
          yield chunk.text
        }
      } finally {
        leaving.abort()
      }
      messages.push(whole)
      return whole.tool_calls.map(({ id, name, args: input }) => ({ id, name, input }))
    },
  }
}

await drive(openWith)
