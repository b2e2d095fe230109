/** Runs each client in each scenario, directly at the upstream and through the service, and records every byte. */
import { type ChildProcess, spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { startSimulator } from '../../simulator/server.ts'
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
/** A driver has this beside the pauses of its upstream. */
const DRIVER_BOUND_MS = 300_000
/** The protocol behind the translated model of each. */
const FOREIGN: Readonly<Record<ChatProtocol, ChatProtocol>> = {
  'chat-completions': 'messages',
  messages: 'chat-completions',
  responses: 'messages',
  'generate-content': 'chat-completions',
}
/** Some clients send pictures only to models whose names tell that they see. */
const nativeModel = (protocol: ChatProtocol): string => `sim-vision-${protocol}`
const foreignModel = (protocol: ChatProtocol): string => `sim-vision-for-${protocol}`

/** What a driver prints of one scenario. */
export interface Seen {
  readonly turns: readonly {
    readonly text: string
    readonly calls: readonly { readonly name: string; readonly input: unknown }[]
  }[]
  readonly hasLeft: boolean
  readonly error: { readonly name: string; readonly status: number | null; readonly message: string } | null
}

/** What came of one client in one scenario. */
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
  const channels = CHAT_PROTOCOLS.flatMap((protocol) => {
    const [native, foreign] = [nativeModel(protocol), foreignModel(protocol)]
    const other = FOREIGN[protocol]
    return [
      simulated(
        protocol,
        { [native]: native },
        {
          ...{ base_url: baseUrlAt(upstream.url, protocol), tools },
          // Clients that leave `store` unset refer to items of earlier responses.
          ...(protocol === 'responses' && { keeps_responses_days: 30 }),
        },
      ),
      simulated(
        other,
        { [foreign]: foreign },
        { id: `line-for-${protocol}`, base_url: baseUrlAt(upstream.url, other), serve: [protocol], tools },
      ),
    ]
  })
  const models = CHAT_PROTOCOLS.flatMap((protocol) => [nativeModel(protocol), foreignModel(protocol)])
  const config = configOf(Object.fromEntries(models.map((id) => [id, { capabilities }])), channels, {
    keep_alive_seconds: keepAliveSeconds,
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

/** Runs a client in all scenarios at once. */
async function runDriver(
  t: Teardown,
  { command, env }: Program,
  client: Client,
  scenarios: readonly Scenario[],
  { url, key }: Target,
  pauseMs: number,
): Promise<Passage[]> {
  const recorders = await Promise.all(scenarios.map(() => startRecorder(t, url)))
  const cases = scenarios.map((scenario, at) => ({
    baseUrl: recorders[at]!.url,
    key,
    model: (scenario.isTranslated ? foreignModel : nativeModel)(client.protocol),
    prompt: scenario.prompt,
    tools: scenario.tools ?? 0,
    image: scenario.image ?? null,
    followUp: scenario.followUp ?? null,
    leaveAfterCharacters: scenario.leaveAfterCharacters ?? null,
  }))
  const [program = '', ...args] = [...endWithUs('SIGKILL'), ...command]
  const child = spawn(program, args, { env, timeout: DRIVER_BOUND_MS + 8 * pauseMs })
  child.stdin.end(JSON.stringify({ protocol: client.protocol, package: client.package, cases }))
  const seen = await readSeen(child, scenarios.length)
  return recorders.map((recorder, at) => ({ recorder, seen: seen[at]! }))
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
  pauseMs: number,
): Promise<{ readonly key: string; readonly outcomes: readonly Outcome[] }> {
  const { service, directUrl } = place
  const scenarios = listScenarios(client.id, pauseMs).filter(
    ({ isForAgents }) => isForAgents || !client.isAgent,
  )
  const { key } = await service.newKey(CREDIT)
  const runAt = (target: Target) => runDriver(t, program, client, scenarios, target, pauseMs)
  const [direct, through] = await Promise.all([
    runAt({ url: directUrl, key: 'sk-direct' }),
    runAt({ url: service.baseUrl, key }),
  ])
  const outcomes = scenarios.map((scenario, at) => ({
    client,
    scenario,
    upstream: scenario.isTranslated ? FOREIGN[client.protocol] : client.protocol,
    direct: direct[at]!,
    through: through[at]!,
  }))
  return { key, outcomes }
}
