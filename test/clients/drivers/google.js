import { GoogleGenAI } from '@google/genai'
import { drive, TOOL_SCHEMA, toolNames, toParts } from './driver.js'

function open({ baseUrl, key, model, tools }) {
  const client = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl } })
  const contents = []
  const functionDeclarations = toolNames(tools).map((name) => ({
    ...{ name, description: `Finds ${name}.`, parametersJsonSchema: TOOL_SCHEMA },
  }))
  return {
    say(words, image) {
      contents.push({ role: 'user', parts: toParts(words, image) })
    },
    answer(calls) {
      const parts = calls.map(({ id, name, result }) => ({
        functionResponse: { ...(id !== undefined && { id }), name, response: { output: result } },
      }))
      contents.push({ role: 'user', parts })
    },
    async *turn() {
      const leaving = new AbortController()
      const config = {
        abortSignal: leaving.signal,
        ...(tools > 0 && { tools: [{ functionDeclarations }] }),
      }
      const parts = []
      try {
        for await (const chunk of await client.models.generateContentStream({ model, contents, config })) {
          parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []))
          yield chunk.text ?? ''
        }
      } finally {
        leaving.abort()
      }
      contents.push({ role: 'model', parts })
      return parts
        .filter(({ functionCall }) => functionCall !== undefined)
        .map(({ functionCall: { id, name, args } }) => ({ id, name, input: args }))
    },
  }
}

await drive(() => open)
