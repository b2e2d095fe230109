/** What a newcomer reads when the service is up: where it is, a key, and a call to copy. */
import type { ModelEntry } from '../../schemas/catalog.ts'

export interface BannerFacts {
  readonly version: string
  /** On this machine; null for a service without a gateway. */
  readonly baseUrl: string | null
  /** Where others reach it, when the operator has said so. */
  readonly publicUrl: string | null
  /** The usual port, which somebody else had; null when it is in use here or another was named. */
  readonly takenPort: number | null
  readonly startMs: number
  /** Null where the operator has accounts of their own. */
  readonly key: string | null
  readonly credit: string | null
  /** A chat model to call; null where none is configured. */
  readonly model: string | null
  /** The configuration in force; null for the demonstration. */
  readonly configPath: string | null
  readonly dataDir: string
  readonly engines: readonly string[]
}

/** The model that the printed call uses: the first chat model that can be called. */
export const bannerModel = (models: readonly ModelEntry[], served: (id: string) => boolean): string | null =>
  models.find((m) => m.callable && m.endpoint_type === null && served(m.id))?.id ?? null

export function banner(facts: BannerFacts): string {
  const configuration =
    facts.configPath ??
    'the demonstration: a simulated provider, no account anywhere. Write a tollgate.yaml for real ones'
  const lines = [
    '',
    `  Tollgate ${facts.version} is ready (${(facts.startMs / 1000).toFixed(1)} s)`,
    '',
    ...addressLines(facts),
    ...(facts.key === null ? [] : [`  API key        ${facts.key}`]),
    ...(facts.credit === null ? [] : [`  Balance        ${facts.credit} credits`]),
    `  Configuration  ${configuration}`,
    `  Data           ${facts.dataDir}`,
    ...(facts.engines.length === 0 ? [] : [`  Embedded       ${facts.engines.join(', ')}`]),
    '',
    ...callLines(facts),
    '  Stop with Ctrl-C: open streams may finish, and the next start finds all data again.',
    '',
  ]
  return `${lines.join('\n')}\n`
}

/** The same for a program: one JSON value on one line. */
export const factsJson = (facts: BannerFacts): string =>
  `${JSON.stringify({
    version: facts.version,
    base_url: facts.baseUrl,
    public_url: facts.publicUrl,
    key: facts.key,
    balance: facts.credit,
    model: facts.model,
    config: facts.configPath,
    data_dir: facts.dataDir,
    embedded: facts.engines,
  })}\n`

function addressLines({ baseUrl, publicUrl, takenPort }: BannerFacts): string[] {
  if (baseUrl === null)
    return ['  Base URL       none: this service takes no calls, it books those of others']
  const why = takenPort === null ? '' : ` (port ${takenPort} is taken)`
  return [
    `  Base URL       ${publicUrl ?? baseUrl}/v1${publicUrl === null ? why : ''}`,
    ...(publicUrl === null ? [] : [`  Listens at     ${baseUrl}/v1${why}`]),
  ]
}

function callLines({ key, model, baseUrl }: BannerFacts): string[] {
  if (baseUrl === null) return []
  if (key === null)
    return [
      '  Make a key:    npm run -s tollgate -- account create --name NAME',
      '                 npm run -s tollgate -- key create --account ID --name NAME',
      '',
    ]
  if (model === null) return []
  const body = JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'Hello!' }] })
  return [
    '  A first call, streamed:',
    '',
    `curl -N ${baseUrl}/v1/chat/completions -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' -d '${body}'`,
    '',
    '  And what it cost:',
    '',
    `curl '${baseUrl}/v1/logs?limit=1' -H 'Authorization: Bearer ${key}'`,
    '',
  ]
}
