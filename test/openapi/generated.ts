/** A TypeScript client that is generated from the description: it compiles, and makes every kind of call. */
import { execFile } from 'node:child_process'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { installPackages } from '../support/npm-packages.ts'

const run = promisify(execFile)
const HERE = fileURLToPath(new URL('generated/', import.meta.url))
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024

/** What the demonstration has not. */
const MODELS = `
models:
  - { id: kept-chat, pricing: { unit: 1M_tokens, input: "1", output: "2" } }
  - { id: embed, endpoint_type: embeddings, pricing: { unit: 1M_tokens, input: "1" } }
  - { id: rank, endpoint_type: rerank, pricing: { unit: search, per_unit: "1" } }
  - { id: hear, endpoint_type: audio_transcriptions, pricing: { unit: minute, per_unit: "1" } }`
const CHANNELS = `
channels:
  - { id: vectors, protocol: chat-completions, base_url: "\${TOLLGATE_SIMULATOR_URL}/v1", api_key: test,
      models: { embed: sim-embed, rank: sim-rank, hear: sim-hear } }
  - { id: keeping, protocol: responses, base_url: "\${TOLLGATE_SIMULATOR_URL}/v1", api_key: test,
      keeps_responses_days: 30, keeps_conversations: true, models: { kept-chat: sim-kept } }`

/** Returns the configuration with a model for every kind of call. */
export const withEveryKind = (config: string): string =>
  config.replace('\nmodels:', MODELS).replace('\nchannels:', CHANNELS)

/** Returns what is wrong with the client; null where nothing is. */
export async function testGeneratedClient(
  baseUrl: string,
  token: string,
  say: (line: string) => void,
): Promise<string | null> {
  const folder = await installPackages(join(HERE, 'package.json'))
  cpSync(HERE, folder, { recursive: true })
  const options = { cwd: folder, maxBuffer: MAX_OUTPUT_BYTES }
  const steps: readonly (readonly string[])[] = [
    ['generate.js', `${baseUrl}/openapi.json`],
    ['node_modules/typescript/bin/tsc', '-p', '.'],
    ['built/main.js', baseUrl, token],
  ]
  try {
    for (const step of steps) {
      const { stdout } = await run(process.execPath, step, options)
      if (stdout !== '') say(`generated client: ${stdout.trim()}`)
    }
    return null
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    return `${stdout}${stderr}` || String(error)
  }
}
