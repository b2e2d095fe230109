import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents'
import { drive, printResult, TOOL_SCHEMA, toolNames } from './driver.js'

const openWith =
  (protocol) =>
  ({ baseUrl, key, model, tools: count }) => {
    const useResponses = protocol === 'responses'
    const modelProvider = new OpenAIProvider({ baseURL: `${baseUrl}/v1`, apiKey: key, useResponses })
    const runner = new Runner({ modelProvider, tracingDisabled: true })
    const tools = toolNames(count).map((name) =>
      tool({
        ...{ name, description: `Finds ${name}.`, parameters: TOOL_SCHEMA, strict: true },
        execute: async (input) => printResult({ name, input }),
      }),
    )
    // A run is one turn of the model, as with other clients, and the tools that it calls.
    const agent = new Agent({ name: 'Test', model, tools, toolUseBehavior: 'stop_on_first_tool' })
    let history = []
    return {
      say(words, image) {
        const picture = image === null ? [] : [{ type: 'input_image', image }]
        history.push({ role: 'user', content: [{ type: 'input_text', text: words }, ...picture] })
      },
      // The run has noted the results.
      answer() {},
      async *turn() {
        const leaving = new AbortController()
        try {
          const run = await runner.run(agent, history, { stream: true, signal: leaving.signal })
          for await (const { type, data } of run)
            if (type === 'raw_model_stream_event' && data.type === 'output_text_delta') yield data.delta
          await run.completed
          history = run.history
          return run.newItems
            .filter(({ type }) => type === 'tool_call_item')
            .map(({ rawItem: { callId: id, name, arguments: input } }) => ({
              id,
              name,
              input: JSON.parse(input),
            }))
        } finally {
          leaving.abort()
        }
      },
    }
  }

await drive(openWith)
