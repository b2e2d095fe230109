/**
 * Runs coding agents without their screens: each gets the settings that `tollgate connect` writes, in a separate home, and the
 * prompt on stdin. What it prints is its one turn; the tools that the model calls are the agent's own.
 */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { drive } from './driver.js'

const BIN = join(import.meta.dirname, '../node_modules/.bin')

const AGENTS = {
  '@anthropic-ai/claude-code': ({ baseUrl, key, model }) => ({
    command: ['claude', '-p'],
    env: {
      ANTHROPIC_BASE_URL: baseUrl,
      ANTHROPIC_AUTH_TOKEN: key,
      ANTHROPIC_MODEL: model,
      ANTHROPIC_DEFAULT_OPUS_MODEL: model,
      ANTHROPIC_DEFAULT_SONNET_MODEL: model,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
    },
  }),
  '@openai/codex': ({ baseUrl, key, model }) => ({
    command: ['codex', 'exec', '--skip-git-repo-check', '-'],
    files: {
      '.codex/config.toml': [
        `model = "${model}"`,
        'model_provider = "tollgate"',
        '[model_providers.tollgate]',
        'name = "Tollgate"',
        `base_url = "${baseUrl}/v1"`,
        'wire_api = "responses"',
        `experimental_bearer_token = "${key}"`,
      ].join('\n'),
    },
  }),
  '@google/gemini-cli': ({ baseUrl, key, model }) => ({
    command: ['gemini', '--skip-trust', '-p', ''],
    env: { GEMINI_API_KEY: key, GOOGLE_GEMINI_BASE_URL: baseUrl, GEMINI_MODEL: model },
    files: { '.gemini/settings.json': '{"security": {"auth": {"selectedType": "gemini-api-key"}}}' },
  }),
  '@qwen-code/qwen-code': ({ baseUrl, key, model }) => ({
    command: ['qwen'],
    env: { OPENAI_API_KEY: key, OPENAI_BASE_URL: `${baseUrl}/v1`, OPENAI_MODEL: model },
    files: { '.qwen/settings.json': '{"security": {"auth": {"selectedType": "openai"}}}' },
  }),
  'opencode-ai': ({ baseUrl, key, model }) => ({
    command: ['opencode', 'run'],
    files: {
      '.config/opencode/opencode.json': JSON.stringify({
        model: `tollgate/${model}`,
        provider: {
          tollgate: {
            npm: '@ai-sdk/openai-compatible',
            name: 'Tollgate',
            options: { baseURL: `${baseUrl}/v1`, apiKey: key },
            models: { [model]: { name: model } },
          },
        },
      }),
    },
  }),
}

const openWith = (_, name) => (given) => {
  let prompt = ''
  return {
    say(words) {
      prompt = words
    },
    async *turn() {
      const home = mkdtempSync(join(tmpdir(), 'tollgate-agent-'))
      const { command, env = {}, files = {} } = AGENTS[name](given)
      for (const [path, content] of Object.entries(files)) {
        mkdirSync(dirname(join(home, path)), { recursive: true })
        writeFileSync(join(home, path), content)
      }
      const work = join(home, 'work')
      mkdirSync(work)
      const [program, ...args] = command
      const child = spawn(join(BIN, program), args, {
        cwd: work,
        env: { PATH: process.env.PATH, HOME: home, ...env },
      })
      child.stdin.end(prompt)
      const [printed, complaint, code] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        new Promise((resolve) => child.once('exit', resolve)),
      ])
      rmSync(home, { recursive: true, force: true, maxRetries: 5 })
      if (code !== 0) throw new Error(`it ended with ${code}: ${complaint.slice(-400)}`)
      yield printed.trim()
      return []
    },
  }
}

// Each is a large program.
await drive(openWith, 2)
