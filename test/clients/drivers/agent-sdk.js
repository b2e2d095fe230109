/** Runs the Claude Agent SDK with the settings of Claude Code, which it reads; its tools are the agent's own. */
import { query } from '@anthropic-ai/claude-agent-sdk'
import { hasServer, makeHome, RESULT, readResult, SERVER_NAME, toolsServer, writeTask } from './agent-home.js'
import { drive } from './driver.js'

const TOOLS = {
  shell: (command) => ['Bash', { command, description: 'One step' }],
  read: (file_path) => ['Read', { file_path }],
  write: (file_path, content) => ['Write', { file_path, content }],
}

const openWith = () => (given) => {
  const home = makeHome(given)
  const mcpServers = hasServer(given.tools) ? { [SERVER_NAME]: toolsServer(given.tools) } : {}
  let content = []
  let turns = 0
  return {
    say(words, image) {
      const text = given.hasTask ? writeTask(TOOLS, home.work) : words
      const source = { type: 'base64', media_type: 'image/png', data: image?.slice(image.indexOf(',') + 1) }
      content = [{ type: 'text', text }, ...(image === null ? [] : [{ type: 'image', source }])]
    },
    async *turn() {
      const leaving = new AbortController()
      async function* prompt() {
        yield { type: 'user', message: { role: 'user', content }, parent_tool_use_id: null }
      }
      const options = {
        ...{
          cwd: home.work,
          env: { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, HOME: home.path },
          settingSources: ['user'],
        },
        ...{ allowedTools: ['Bash', 'Read', 'Write'], mcpServers, includePartialMessages: true },
        ...{ abortController: leaving, continue: turns++ > 0 },
      }
      try {
        for await (const { type, event, is_error, result } of query({ prompt: prompt(), options })) {
          if (type === 'stream_event' && event.delta?.type === 'text_delta') yield event.delta.text
          if (type === 'result' && is_error) throw new Error(result)
        }
      } finally {
        leaving.abort()
      }
      if (given.hasTask && readResult(home.work) !== RESULT.content) throw new Error('the task is not done')
      return []
    },
    close: home.remove,
  }
}

// Each is a large program.
await drive(openWith, 4)
