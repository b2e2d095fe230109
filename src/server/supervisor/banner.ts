/** The text printed when the service is up: its address, a key, and a first call to copy. */
import type { ModelEntry } from '../../../schemas/config/catalog.ts'

export interface BannerFacts {
  readonly version: string
  /** On this machine; null for a service without a gateway. */
  readonly baseUrl: string | null
  /** The address that the operator configured for clients, or null. */
  readonly publicUrl: string | null
  /** The default port when another program has it; null when it is in use here or another was named. */
  readonly takenPort: number | null
  readonly startMs: number
  /** The web console; null for a service without a gateway. */
  readonly consoleUrl: string | null
  /** Signs in the first operator, once; null once they have signed in. Holds a secret. */
  readonly signInUrl: string | null
  /** Null where the operator has accounts already. */
  readonly key: string | null
  /** Also holds the key; only its owner may read it. */
  readonly runFile: string
  readonly credit: string | null
  /** A chat model to call; null where none is configured. */
  readonly model: string | null
  /** The configuration in force; null for the demonstration. */
  readonly configPath: string | null
  readonly dataDir: string
  readonly engines: readonly string[]
}

/** Returns the model of the printed call: the first chat model of the configuration that can be called. */
export const findBannerModel = (
  models: readonly ModelEntry[],
  served: (id: string) => boolean,
): string | null => models.find((m) => m.callable && m.endpoint_type === null && served(m.id))?.id ?? null

/** Returns the request body of the printed call. */
export const makeFirstCallBody = (model: string) => ({
  model,
  stream: true,
  messages: [{ role: 'user', content: 'Hello!' }],
})

/**
 * Returns the text for people.
 * @param isTerminal true where only the reader sees the key; elsewhere the output is kept in logs
 */
export function printBanner(facts: BannerFacts, isTerminal: boolean): string {
  const configuration =
    facts.configPath ??
    'the demonstration: a simulated provider, no account anywhere. Write a tollgate.yaml for real ones'
  const lines = [
    '',
    `  Tollgate ${facts.version} is ready (${(facts.startMs / 1000).toFixed(1)} s)`,
    '',
    ...printConsoleLines(facts, isTerminal),
    ...printAddressLines(facts),
    ...(facts.key === null
      ? []
      : [`  API key        ${isTerminal ? facts.key : `first_key in ${facts.runFile}`}`]),
    ...printConnectLines(facts),
    ...(facts.credit === null ? [] : [`  Balance        ${facts.credit} credits`]),
    `  Configuration  ${configuration}`,
    `  Data           ${facts.dataDir}`,
    ...(facts.engines.length === 0 ? [] : [`  Embedded       ${facts.engines.join(', ')}`]),
    '',
    ...printCallLines(facts, isTerminal),
    '  Stop with Ctrl-C: open streams may finish, and the next start finds all data again.',
    '',
  ]
  return `${lines.join('\n')}\n`
}

/** Returns the same for a program: one JSON value on one line. */
export const printFactsJson = (facts: BannerFacts, isTerminal: boolean): string =>
  `${JSON.stringify({
    version: facts.version,
    base_url: facts.baseUrl,
    public_url: facts.publicUrl,
    console_url: facts.consoleUrl,
    sign_in_url: isTerminal ? facts.signInUrl : null,
    key: isTerminal ? facts.key : null,
    run_file: facts.runFile,
    balance: facts.credit,
    model: facts.model,
    config: facts.configPath,
    data_dir: facts.dataDir,
    embedded: facts.engines,
  })}\n`

function printAddressLines({ baseUrl, publicUrl, takenPort }: BannerFacts): string[] {
  if (baseUrl === null)
    return ['  Base URL       none: this service takes no calls, it books those of others']
  const why = takenPort === null ? '' : ` (port ${takenPort} is taken)`
  return [
    `  Base URL       ${publicUrl ?? baseUrl}/v1${publicUrl === null ? why : ''}`,
    ...(publicUrl === null ? [] : [`  Listens at     ${baseUrl}/v1${why}`]),
  ]
}

function printConsoleLines({ consoleUrl, signInUrl, runFile }: BannerFacts, isTerminal: boolean): string[] {
  if (consoleUrl === null) return []
  if (signInUrl === null) return [`  Console        ${consoleUrl}`]
  if (isTerminal) return [`  Console        ${signInUrl} (signs you in, once, within 15 minutes)`]
  return [`  Console        ${consoleUrl}; sign_in_url in ${runFile} signs you in, once, within 15 minutes`]
}

/** Agents need a key and a model to call. */
const printConnectLines = ({ baseUrl, key, model }: BannerFacts): string[] =>
  baseUrl === null || key === null || model === null
    ? []
    : [
        '  Claude Code    npm run -s tollgate -- connect claude',
        '  Codex          npm run -s tollgate -- connect codex',
      ]

function printCallLines({ key, model, baseUrl, runFile }: BannerFacts, isTerminal: boolean): string[] {
  if (baseUrl === null) return []
  if (key === null)
    return [
      '  Make a key:    npm run -s tollgate -- account create --name NAME',
      '                 npm run -s tollgate -- key create --account ID --name NAME',
      '',
    ]
  if (model === null) return []
  const body = JSON.stringify(makeFirstCallBody(model))
  const authorization = isTerminal
    ? `'Authorization: Bearer ${key}'`
    : '"Authorization: Bearer $TOLLGATE_KEY"'
  return [
    ...(isTerminal
      ? []
      : [
          '  The key, for the calls below:',
          '',
          `export TOLLGATE_KEY=$(node -p 'JSON.parse(fs.readFileSync(${JSON.stringify(runFile)})).first_key')`,
          '',
        ]),
    '  A first call, streamed:',
    '',
    `curl -N ${baseUrl}/v1/chat/completions -H ${authorization} -H 'Content-Type: application/json' -d '${body}'`,
    '',
    '  And what it cost:',
    '',
    `curl '${baseUrl}/v1/logs?limit=1' -H ${authorization}`,
    '',
  ]
}
