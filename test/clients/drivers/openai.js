import OpenAI from 'openai'
import { drive, TOOL_SCHEMA, toolNames } from './driver.js'

const clientOf = ({ baseUrl, key }) => new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey: key })

function openChat(given) {
  const client = clientOf(given)
  const { model } = given
  const messages = []
  const tools = toolNames(given.tools).map((name) => ({
    type: 'function',
    function: { name, description: `Finds ${name}.`, parameters: TOOL_SCHEMA },
  }))
  return {
    say(words, image) {
      const picture = image === null ? [] : [{ type: 'image_url', image_url: { url: image } }]
      messages.push({ role: 'user', content: [{ type: 'text', text: words }, ...picture] })
    },
    answer(calls) {
      for (const { id, result } of calls) messages.push({ role: 'tool', tool_call_id: id, content: result })
    },
    async *turn() {
      const stream = client.chat.completions.stream({ model, messages, ...(tools.length > 0 && { tools }) })
      for await (const { choices } of stream) yield choices[0]?.delta.content ?? ''
      const { message } = (await stream.finalChatCompletion()).choices[0]
      messages.push(message)
      return (message.tool_calls ?? []).map(({ id, function: { name, arguments: input } }) => ({
        ...{ id, name, input: JSON.parse(input) },
      }))
    },
  }
}

function openResponses(given) {
  const client = clientOf(given)
  const { model } = given
  const input = []
  const tools = toolNames(given.tools).map((name) => ({
    ...{ type: 'function', name, description: `Finds ${name}.`, parameters: TOOL_SCHEMA, strict: true },
  }))
  return {
    say(words, image) {
      const picture = image === null ? [] : [{ type: 'input_image', image_url: image, detail: 'auto' }]
      input.push({ role: 'user', content: [{ type: 'input_text', text: words }, ...picture] })
    },
    answer(calls) {
      for (const { id, result } of calls)
        input.push({ type: 'function_call_output', call_id: id, output: result })
    },
    async *turn() {
      const stream = client.responses.stream({
        model,
        input,
        store: false,
        ...(tools.length > 0 && { tools }),
      })
      for await (const event of stream) if (event.type === 'response.output_text.delta') yield event.delta
      const { output } = await stream.finalResponse()
      input.push(...output)
      return output
        .filter(({ type }) => type === 'function_call')
        .map(({ call_id: id, name, arguments: input }) => ({ id, name, input: JSON.parse(input) }))
    },
  }
}

await drive((protocol) => (protocol === 'responses' ? openResponses : openChat))
