/** Runs each client in each scenario, directly at the upstream and through the service, and records every byte. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { CLIENTS as CONNECTED } from '../../schemas/clients.ts'
import { startSimulator } from '../../simulator/server.ts'
import { fillFields, printSettings, type SettingsValues } from '../../src/core/clients/settings.ts'
import { endWithUs } from '../../src/embedded/programs.ts'
import {
  baseUrlAt,
  CHAT_PROTOCOLS,
  type ChatProtocol,
  configOf,
  simulated,
} from '../end-to-end/protocols/support.ts'
import { startEngines, type Teardown } from '../support/engines.ts'
import { startService, type TestService } from '../support/service.ts'
import type { Client } from './clients.ts'
import type { Program } from './install.ts'
import { type Recorder, startRecorder } from './recorder.ts'
import { listScenarios, type Scenario } from './scenarios.ts'

const CREDIT = '1000000000'
/** A driver bounds each case, of which agents run four at once. */
const DRIVER_BOUND_MS = 2_700_000
/** Some clients send pictures only to models whose names tell that they see. */
const nameModel = (protocol: ChatProtocol, upstream = protocol): string =>
  upstream === protocol ? `sim-vision-${protocol}` : `sim-vision-${upstream}-for-${protocol}`

/** What a driver prints of one scenario. */
export interface Seen {
  readonly turns: readonly {
    readonly text: string
    readonly calls: readonly { readonly name: string; readonly input: unknown }[]
  }[]
  readonly hasLeft: boolean
  readonly error: { readonly name: string; readonly status: number | null; readonly message: string } | null
}

/** The result of one client in one scenario. */
export interface Outcome {
  readonly client: Client
  readonly scenario: Scenario
  /** The protocol of the upstream behind the service. */
  readonly upstream: ChatProtocol
  readonly direct: Passage
  readonly through: Passage
}

export interface Passage {
  readonly seen: Seen
  /** What passed between the client and whom it calls. */
  readonly recorder: Recorder
}

export interface Place {
  readonly service: TestService
  /** The upstream of the direct runs. */
  readonly directUrl: string
  /** What passed between the service and its upstream. */
  readonly upstream: Recorder
}

/** Starts the service with a recorder between it and its upstream, and another upstream for the direct runs. */
export async function startPlace(t: Teardown, keepAliveSeconds: number): Promise<Place> {
  const engines = await startEngines(t)
  const upstream = await startRecorder(t, engines.simulatorUrl)
  const capabilities = { function_tools: true, vision: true, reasoning: true, web_search: true }
  // Coding agents offer it to every model.
  const tools = ['web_search' as const]
  const pairs = CHAT_PROTOCOLS.flatMap((protocol) =>
    CHAT_PROTOCOLS.map((other) => ({ protocol, other, model: nameModel(protocol, other) })),
  )
  const channels = pairs.map(({ protocol, other, model }) =>
    simulated(
      other,
      { [model]: model },
      {
        ...{ id: `${other}-for-${protocol}`, base_url: baseUrlAt(upstream.url, other), tools },
        ...(protocol !== other && { serve: [protocol] }),
        // Clients that leave `store` unset refer to items of earlier responses.
        ...(protocol === 'responses' && other === protocol && { keeps_responses_days: 30 }),
      },
    ),
  )
  const models = Object.fromEntries(pairs.map(({ model }) => [model, { capabilities }]))
  const config = configOf(models, channels, {
    keep_alive_seconds: keepAliveSeconds,
    // Two pauses of 70 s, on a slow machine.
    limits: { chat_seconds: 600 },
  })
  const service = await startService(t, { engines, config })
  const direct = await startSimulator({ host: '127.0.0.1', port: 0 })
  t.teardown(() => direct.close())
  return { service, directUrl: direct.url, upstream }
}

interface Target {
  readonly url: string
  readonly key: string
}

/** Returns what `tollgate connect` writes for a coding agent, by the path in its home folder. */
function listSettings({ agent }: Client, values: SettingsValues): Record<string, string> {
  const { files, folder } = CONNECTED[agent!]!
  return Object.fromEntries(
    files.map((file) => [join(folder.default, file.names.at(-1)!), printSettings(fillFields(file, values))]),
  )
}

/** Runs a client in all scenarios. */
async function runDriver(
  t: Teardown,
  { command, env }: Program,
  client: Client,
  scenarios: readonly Scenario[],
  { url, key }: Target,
): Promise<Passage[]> {
  const recorders = await Promise.all(scenarios.map(() => startRecorder(t, url)))
  const cases = scenarios.map((scenario, at) => {
    const baseUrl = recorders[at]!.url
    const model = nameModel(client.protocol, scenario.foreign)
    return {
      ...{ baseUrl, key, model, prompt: scenario.prompt, tools: scenario.tools ?? 0 },
      image: scenario.image ?? null,
      followUp: scenario.followUp ?? null,
      leaveAfterCharacters: scenario.leaveAfterCharacters ?? null,
      hasTask: scenario.hasTask ?? false,
      files: client.agent === undefined ? {} : listSettings(client, { base_url: baseUrl, model, key }),
    }
  })
  const [program = '', ...args] = [...endWithUs('SIGKILL'), ...command]
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-clients-'))
  // Its own process group: killing the group also ends everything that it started.
  const child = spawn(program, args, { env: { ...env, TMPDIR: folder }, detached: true })
  const endGroup = () => {
    try {
      process.kill(-child.pid!, 'SIGKILL')
    } catch {
      // it has ended
    }
  }
  const bound = setTimeout(endGroup, DRIVER_BOUND_MS)
  child.stdin.on('error', () => undefined)
  child.stdin.end(JSON.stringify({ protocol: client.protocol, package: client.package, cases }))
  try {
    const seen = await readSeen(child, scenarios.length)
    return recorders.map((recorder, at) => ({ recorder, seen: seen[at]! }))
  } finally {
    clearTimeout(bound)
    endGroup()
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 })
  }
}

/** A driver that printed something else has failed in every scenario. */
async function readSeen(child: ChildProcess, count: number): Promise<Seen[]> {
  const [printed, complaint] = await Promise.all([text(child.stdout!), text(child.stderr!)])
  try {
    return JSON.parse(printed)
  } catch {
    const message = `it printed no JSON: ${printed.slice(0, 1000)} ${complaint.slice(-2000)}`
    return Array(count).fill({ turns: [], hasLeft: false, error: { name: 'Driver', status: null, message } })
  }
}

/** Runs a client directly and through the service. Returns its key there too. */
export async function runClient(
  t: Teardown,
  place: Place,
  program: Program,
  client: Client,
  pausesMs: readonly number[],
): Promise<{ readonly key: string; readonly outcomes: readonly Outcome[] }> {
  const { service, directUrl } = place
  const scenarios = listScenarios(client, pausesMs)
  const { key } = await service.newKey(CREDIT)
  const runAt = (target: Target, some: readonly Scenario[]) => runDriver(t, program, client, some, target)
  const natural = scenarios.filter(({ foreign }) => foreign === undefined)
  const [direct, through] = await Promise.all([
    runAt({ url: directUrl, key: 'sk-direct' }, natural),
    runAt({ url: service.baseUrl, key }, scenarios),
  ])
  const outcomes = scenarios.map((scenario, at) => ({
    client,
    scenario,
    upstream: scenario.foreign ?? client.protocol,
    direct: direct[natural.findIndex(({ id }) => id === (scenario.natural ?? scenario.id))]!,
    through: through[at]!,
  }))
  return { key, outcomes }
}
