import { GoogleGenerativeAI } from '@google/generative-ai'
import { drive, TOOL_SCHEMA, toolNames, toParts } from './driver.js'

// It knows schemas of the older form only.
const { additionalProperties: _, ...parameters } = TOOL_SCHEMA

function open({ baseUrl, key, model: id, tools }) {
  const functionDeclarations = toolNames(tools).map((name) => ({
    ...{ name, description: `Finds ${name}.`, parameters },
  }))
  const settings = { model: id, ...(tools > 0 && { tools: [{ functionDeclarations }] }) }
  const model = new GoogleGenerativeAI(key).getGenerativeModel(settings, { baseUrl })
  const contents = []
  return {
    say(words, image) {
      contents.push({ role: 'user', parts: toParts(words, image) })
    },
    answer(calls) {
      const parts = calls.map(({ name, result }) => ({
        functionResponse: { name, response: { output: result } },
      }))
      contents.push({ role: 'user', parts })
    },
    async *turn() {
      const leaving = new AbortController()
      const parts = []
      try {
        const { stream } = await model.generateContentStream({ contents }, { signal: leaving.signal })
        for await (const chunk of stream) {
          const fresh = chunk.candidates?.[0]?.content?.parts ?? []
          parts.push(...fresh)
          yield fresh.map(({ text }) => text ?? '').join('')
        }
      } finally {
        leaving.abort()
      }
      contents.push({ role: 'model', parts })
      return parts
        .filter(({ functionCall }) => functionCall !== undefined)
        .map(({ functionCall: { name, args } }) => ({ name, input: args }))
    },
  }
}

await drive(() => open)
