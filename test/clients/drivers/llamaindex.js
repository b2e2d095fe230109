import { OpenAI } from '@llamaindex/openai'
import { tool } from 'llamaindex'
import { drive, printResult, TOOL_SCHEMA, toolNames } from './driver.js'

const openWith =
  () =>
  ({ baseUrl, key, model, tools: count }) => {
    const llm = new OpenAI({ model, apiKey: key, baseURL: `${baseUrl}/v1` })
    const tools = toolNames(count).map((name) =>
      tool({
        ...{ name, description: `Finds ${name}.`, parameters: TOOL_SCHEMA },
        execute: (input) => printResult({ name, input }),
      }),
    )
    const messages = []
    return {
      say(words, image) {
        const picture = image === null ? [] : [{ type: 'image_url', image_url: { url: image } }]
        messages.push({ role: 'user', content: [{ type: 'text', text: words }, ...picture] })
      },
      // It has noted the results.
      answer() {},
      async *turn() {
        const { stream, newMessages, toolCalls } = await llm.exec({ messages, tools, stream: true })
        for await (const { delta } of stream) yield delta ?? ''
        messages.push(...newMessages())
        return toolCalls.map(({ id, name, input }) => ({ id, name, input }))
      },
    }
  }

await drive(openWith)
