/**
 * `npm run test:openapi`: schemathesis from PyPI makes requests of `/openapi.json`, valid and invalid ones, with a key and with
 * a management token, and compares the answers with it. A client that is generated from it makes calls of every kind. Then
 * the books are verified.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { FLAG, givenOptions, TEXT } from '../../bench/harness/command-line.ts'
import { MANAGEMENT_PATH } from '../../schemas/routes.ts'
import { DEMONSTRATION_FILE, SIMULATOR_URL_VARIABLE } from '../../src/config/demonstration.ts'
import { startEngines, type Teardown, testDataDir } from '../support/engines.ts'
import { findBookDifference, runServiceCommand, runTestProgram } from '../support/program-run.ts'
import { installPython } from '../support/python-sdks.ts'
import { startService, type TestService } from '../support/service.ts'
import { testGeneratedClient, withEveryKind } from './generated.ts'
import { LEFT_OUT, RULES, UNAVAILABLE } from './rules.ts'

const USAGE = `npm run test:openapi -- [options]

  --fuzz           also random requests and sequences of calls; takes long
  --only REGEX     only the paths that match
  --generated      only the generated client
`
const SCHEMATHESIS = 'schemathesis==4.32.5'
const SCOPES = 'read,keys,accounts,billing,knowledge,admin'
/** More than a run spends. */
const CREDITS = '1000000'

const say = (line: string) => void process.stdout.write(`${line}\n`)

interface Check {
  readonly name: string
  readonly status: string
  readonly failure_info?: { readonly failure: { readonly title: string; readonly message: string } }
}

interface Scenario {
  readonly recorder: {
    readonly label: string
    readonly checks?: Readonly<Record<string, readonly Check[]>>
    readonly interactions?: Readonly<Record<string, Interaction>>
  }
}

interface Interaction {
  readonly request: { readonly method: string; readonly uri: string; readonly body?: Content }
  readonly response?: { readonly status_code: number; readonly content?: Content }
}

interface Content {
  readonly $base64: string
}

interface Report {
  readonly ScenarioFinished?: Scenario
  readonly NonFatalError?: { readonly label: string; readonly value: { readonly message: string } }
}

const readContent = (content: Content | undefined): string =>
  content === undefined ? '' : Buffer.from(content.$base64, 'base64').toString()

function readMessage(body: string): string {
  try {
    return JSON.parse(body).error?.message ?? body
  } catch {
    return body
  }
}

const isExplained = (status: number, message: string): boolean =>
  UNAVAILABLE.includes(status) || RULES.some((rule) => rule.status === status && rule.message.test(message))

/** Returns each finding once, with the request that shows it. */
function* listFindings(file: string): Generator<[key: string, text: string]> {
  for (const line of readFileSync(file, 'utf8').split('\n').filter(Boolean)) {
    const { ScenarioFinished: scenario, NonFatalError: error } = JSON.parse(line) as Report
    if (error !== undefined)
      yield [error.label + error.value.message, `${error.label}: ${error.value.message}`]
    if (scenario === undefined) continue
    const { label, checks = {}, interactions = {} } = scenario.recorder
    for (const [id, made] of Object.entries(checks))
      for (const { status, failure_info: info } of made) {
        if (status !== 'failure' || info === undefined) continue
        const { request, response } = interactions[id]!
        const code = response?.status_code ?? 0
        const message = readMessage(readContent(response?.content))
        if (isExplained(code, message)) continue
        const { title, message: detail } = info.failure
        const shown = `${title}; ${code} ${message.slice(0, 300)}`
        const sent = `${request.method} ${request.uri} ${readContent(request.body).slice(0, 500)}`
        yield [
          `${label} ${title} ${code} ${message.replace(/[\d"'].*/s, '')}`,
          `${label}: ${shown}\n    ${detail.slice(0, 600).replaceAll('\n', '\n    ')}\n    ${sent}`,
        ]
      }
  }
}

interface Pass {
  readonly name: string
  /** Of the paths that it calls. */
  readonly paths: string
  readonly token: string
}

async function makePasses(service: TestService): Promise<Pass[]> {
  const account = await runServiceCommand(
    service,
    'account',
    'create',
    '--name',
    'openapi',
    '--credit',
    CREDITS,
    '--yes',
  )
  const key = await runServiceCommand(
    service,
    'key',
    'create',
    '--account',
    String(account.id),
    '--name',
    'openapi',
  )
  const token = await runServiceCommand(service, 'token', 'create', '--name', 'openapi', '--scopes', SCOPES)
  return [
    { name: 'key', paths: `^(?!${MANAGEMENT_PATH})`, token: String(key.key) },
    { name: 'management', paths: `^${MANAGEMENT_PATH}`, token: String(token.token) },
  ]
}

async function callAll(
  t: Teardown,
  service: TestService,
  folder: string,
  { name, paths, token }: Pass,
  options: { readonly fuzz?: boolean; readonly only?: string },
): Promise<string[]> {
  const reports = await testDataDir(t)
  const args = [
    join(folder, 'bin/schemathesis'),
    'run',
    `${service.baseUrl}/openapi.json`,
    ...['--include-path-regex', options.only === undefined ? paths : `${paths}.*${options.only}`],
    ...Object.keys(LEFT_OUT).flatMap((label) => ['--exclude-name', label]),
    ...['-H', `Authorization: Bearer ${token}`],
    ...['--phases', options.fuzz === true ? 'examples,coverage,fuzzing,stateful' : 'examples,coverage'],
    // Some operations need no key, and the account's limits are tested elsewhere.
    ...['--exclude-checks', 'ignored_auth', '--continue-on-failure'],
    ...['--report', 'ndjson', '--report-dir', reports, '--request-timeout', '60', '--no-color'],
  ]
  const child = spawn('python3', args, {
    env: { ...process.env, PYTHONPATH: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
    cwd: reports,
  })
  let output = ''
  child.stdout.on('data', (piece) => {
    output += piece
  })
  await once(child, 'close')
  const file = readdirSync(reports).find((entry) => entry.endsWith('.ndjson'))
  if (file === undefined) throw new Error(`schemathesis wrote no report:\n${output}`)
  const findings = new Map(listFindings(join(reports, file)))
  say(
    `${name}: ${/\d+ generated.*/.exec(output)?.[0] ?? ''}; ${findings.size} findings that are not explained`,
  )
  for (const text of findings.values()) say(`  ${text}`)
  return [...findings.keys()]
}

async function main(t: Teardown, args: string[]): Promise<number> {
  const { help, ...options } = givenOptions(args, {
    help: FLAG,
    fuzz: FLAG,
    only: TEXT,
    generated: FLAG,
  })
  if (help === true) {
    say(USAGE)
    return 0
  }
  const engines = await startEngines(t)
  const service = await startService(t, {
    config: withEveryKind(readFileSync(DEMONSTRATION_FILE, 'utf8')),
    engines,
    env: { [SIMULATOR_URL_VARIABLE]: engines.simulatorUrl },
  })
  const passes = await makePasses(service)
  const findings: string[] = []
  if (options.only === undefined) {
    const problem = await testGeneratedClient(service.baseUrl, passes.at(-1)!.token, say)
    if (problem !== null) {
      say(`the generated client fails: ${problem}`)
      findings.push(problem)
    }
  }
  if (options.generated !== true) {
    const installed = await installPython([SCHEMATHESIS])
    if ('reason' in installed) say(`skipped: ${installed.reason}`)
    else
      for (const pass of passes)
        findings.push(...(await callAll(t, service, installed.folder, pass, options)))
  }
  const difference = await findBookDifference(service)
  say(difference === null ? 'the books agree' : `the books differ: ${difference}`)
  return findings.length === 0 && difference === null ? 0 : 1
}

await runTestProgram(USAGE, main)
