import Anthropic from '@anthropic-ai/sdk'
import { drive, TOOL_SCHEMA, toolNames } from './driver.js'

function open({ baseUrl, key, model, tools: toolCount }) {
  const client = new Anthropic({ baseURL: baseUrl, apiKey: key })
  const messages = []
  const tools = toolNames(toolCount).map((name) => ({
    ...{ name, description: `Finds ${name}.`, input_schema: TOOL_SCHEMA },
  }))
  return {
    say(words, image) {
      const data = image?.slice(image.indexOf(',') + 1)
      const source = { type: 'base64', media_type: 'image/png', data }
      const picture = image === null ? [] : [{ type: 'image', source }]
      messages.push({ role: 'user', content: [{ type: 'text', text: words }, ...picture] })
    },
    answer(calls) {
      const results = calls.map(({ id, result }) => ({
        ...{ type: 'tool_result', tool_use_id: id, content: result },
      }))
      messages.push({ role: 'user', content: results })
    },
    async *turn() {
      const stream = client.messages.stream({
        ...{ model, messages, max_tokens: 4096 },
        ...(tools.length > 0 && { tools }),
      })
      for await (const event of stream)
        if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') yield event.delta.text
      const { role, content } = await stream.finalMessage()
      messages.push({ role, content })
      return content.filter(({ type }) => type === 'tool_use')
    },
  }
}

await drive(() => open)
