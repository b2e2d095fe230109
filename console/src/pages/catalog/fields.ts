/** The fields of the forms of a model and a channel, and how the text of each becomes its value. */
import type { ENDPOINT_TYPES, PRICE_UNITS, ServerTool } from '../../../../schemas/config/catalog.ts'
import { t } from '../../i18n.ts'

/**
 * How a value is written: words behind commas, one a line, or ticked (in a list, or as fields that are true); a map as
 * `name: value` lines; rows as a line of `name: value` with commas between; records as `name: { name: value }` lines.
 */
export type Kind =
  | 'text'
  | 'count'
  | 'flag'
  | 'list'
  | 'lines'
  | 'choices'
  | 'features'
  | 'map'
  | 'rows'
  | 'records'

export interface FieldSpec {
  readonly path: readonly string[]
  readonly label: string
  readonly kind: Kind
  readonly hint?: string | undefined
  readonly options?: readonly string[] | undefined
}

interface FieldGroup {
  readonly title: string
  readonly fields: readonly FieldSpec[]
}

const UNITS = [
  '1M_tokens',
  'image',
  'second',
  'minute',
  'search',
  'generation',
  '1000_characters',
  'call',
  'task',
] as const satisfies typeof PRICE_UNITS
const ENDPOINTS = [
  'images_generations',
  'videos_generations',
  'contents_generations_tasks',
  'music_generations',
  'audio_speech',
  'audio_voices',
  'transcripts_extract',
  'videos_avatars',
  'clip_subtitles',
  'clip_compose',
  'embeddings',
  'rerank',
  'audio_transcriptions',
] as const satisfies typeof ENDPOINT_TYPES
const TOOLS: readonly ServerTool[] = [
  'web_search',
  'image_generation',
  'code_interpreter',
  'computer_use',
  'file_search',
  'maps',
  'mcp',
  'tool_search',
  'url_context',
]
const PROTOCOLS = ['chat-completions', 'messages', 'generate-content', 'responses']

/** @param path names with points between */
const field = (path: string, label: string, kind: Kind = 'text', hint?: string): FieldSpec => ({
  path: path.split('.'),
  label,
  kind,
  hint,
})
const choice = (path: string, label: string, options: readonly string[], kind: Kind = 'text'): FieldSpec => ({
  ...field(path, label, kind),
  options,
})

const listModelGroups = (): readonly FieldGroup[] => [
  {
    title: t('Name and limits'),
    fields: [
      field('display_name', t('Display name')),
      field('aliases', t('Aliases'), 'list', t('Separated by commas.')),
      field('family', t('Family')),
      field('owned_by', t('Owned by')),
      field('callable', t('Callable'), 'flag'),
      choice('endpoint_type', t('Endpoint'), ENDPOINTS),
      field('context_window', t('Context window, tokens'), 'count'),
      field('max_output_tokens', t('Most output tokens'), 'count'),
      field('default_max_tokens', t('Output tokens without a limit'), 'count'),
      choice(
        'capabilities',
        t('Capabilities'),
        ['vision', 'function_tools', 'reasoning', ...TOOLS],
        'features',
      ),
    ],
  },
  {
    title: t('Prices'),
    fields: [
      choice('pricing.unit', t('Price per'), UNITS),
      field('pricing.input', t('Input price')),
      field('pricing.output', t('Output price')),
      field('pricing.cached_input', t('Cached input price')),
      field('pricing.cache_write', t('Cache write price')),
      field('pricing.per_unit', t('Price per unit')),
      field('pricing.server_tool_call', t('Price per tool call')),
      field('pricing.minimum', t('Least charge of a call')),
      field(
        'pricing.tiers',
        t('Price tiers'),
        'rows',
        t('One line for each: {example}', { example: 'from_prompt_tokens: 200000, input: 5, output: 20' }),
      ),
    ],
  },
  {
    title: t('More prices'),
    fields: [
      field('pricing.cache_write_1h', t('Cache write price, one hour')),
      field('pricing.reasoning', t('Reasoning price')),
      field('pricing.input_audio', t('Audio input price')),
      field('pricing.output_audio', t('Audio output price')),
      field('pricing.input_image', t('Image input price')),
      field('pricing.output_image', t('Image output price')),
      field(
        'pricing.variants',
        t('Variants'),
        'map',
        t('One line for each: {example}', { example: '1080p: 12' }),
      ),
      field(
        'pricing.service_tiers',
        t('Service tiers'),
        'map',
        t('Factors on the price, such as flex: 0.5.'),
      ),
      field(
        'pricing.server_tools',
        t('Prices of single tools'),
        'map',
        t('One line for each: {example}', { example: 'web_search: 2' }),
      ),
      field(
        'pricing.pixel_tiers',
        t('Price tiers by pixels'),
        'rows',
        t('One line for each: {example}', { example: 'from_pixels: 1000000, per_unit: 4' }),
      ),
    ],
  },
  {
    title: t('Promotions and planned prices'),
    fields: [
      field('pricing.discount', t('Promotion'), 'text', t('A factor on the price, such as 0.8.')),
      field('pricing.discount_until', t('Promotion ends'), 'text', '2026-12-31T00:00:00Z'),
      field('pricing.discount_server_tools', t('Promotion holds for tools'), 'flag'),
      field(
        'pricing.changes',
        t('Planned prices'),
        'rows',
        t('One line for each: {example}', { example: 'from: 2026-12-31T00:00:00Z, input: 5, output: 20' }),
      ),
    ],
  },
  {
    title: t('Order and failures'),
    fields: [
      choice('strategy', t('Order of channels'), ['priority', 'least_latency', 'least_cost']),
      field('fallbacks', t('Models that stand in'), 'list', t('Separated by commas.')),
      choice('after_client_leaves', t('After the client leaves'), ['abort', 'read_on']),
    ],
  },
]

const listChannelGroups = (): readonly FieldGroup[] => [
  {
    title: t('Provider and models'),
    fields: [
      field('provider', t('Provider')),
      field('protocol', t('Protocol')),
      field('base_url', t('Base URL')),
      field('api_version', t('API version')),
      field(
        'models',
        t('Models'),
        'map',
        t("One line for each: the model of the catalog, a colon, the provider's name of it."),
      ),
    ],
  },
  {
    title: t('Keys and headers'),
    fields: [
      field(
        'api_key',
        t('API key'),
        'text',
        t('A variable such as {example} keeps the key out of the file.', { example: '${EXAMPLE_API_KEY}' }),
      ),
      choice('key_header', t('Header of the key'), [
        'authorization',
        'x-api-key',
        'api-key',
        'x-goog-api-key',
      ]),
      field(
        'api_keys',
        t('API keys'),
        'lines',
        t('One a line, used in turn. A line of asterisks is a hidden key: it stays as it is.'),
      ),
      field(
        'headers',
        t('Headers'),
        'map',
        t('One line for each: {example}', { example: 'X-Team: ${TEAM}' }),
      ),
      field(
        'auth',
        t('Access without a key'),
        'map',
        t('One line for each: {example}', { example: 'type: aws-sigv4' }),
      ),
    ],
  },
  {
    title: t('Order and failures'),
    fields: [
      field('priority', t('Priority'), 'count', t('Lower first.')),
      field('weight', t('Weight'), 'count', t('The share among channels of one priority.')),
      field('timeout_seconds', t('Timeout, seconds'), 'count'),
      choice('upstream_errors', t("The provider's errors"), ['mapped', 'native']),
      field('hide_auth_errors', t('Hide errors of the key'), 'flag'),
    ],
  },
  {
    title: t('What the provider charges'),
    fields: [
      field(
        'cost',
        t('Cost'),
        'records',
        t('One line for each: {example}', { example: 'sonata: { unit: 1M_tokens, input: 2, output: 8 }' }),
      ),
    ],
  },
  {
    title: t('Protocol'),
    fields: [
      choice('serve', t('Protocols that the gateway translates'), PROTOCOLS, 'choices'),
      choice('converts', t('Protocols that the provider converts'), PROTOCOLS, 'choices'),
      choice('tools', t('Tools that the provider runs'), TOOLS, 'choices'),
      field('quirks', t('Quirks'), 'list', t('Separated by commas.')),
      choice('output_limit_field', t('Field of the output limit'), ['max_tokens', 'max_completion_tokens']),
      field('keeps_responses_days', t('Days that it keeps responses'), 'count'),
      field('keeps_conversations', t('Keeps conversations'), 'flag'),
      field('private_links', t('Links to private addresses'), 'flag'),
      field('storage_uri', t('Folder of videos'), 'text', 'gs://my-bucket/films'),
      field(
        'input_names',
        t('Names of input fields'),
        'map',
        t('One line for each: {example}', { example: 'image: image_url' }),
      ),
    ],
  },
]

export type EntryList = 'models' | 'channels'

export const listGroups = (list: EntryList): readonly FieldGroup[] =>
  list === 'models' ? listModelGroups() : listChannelGroups()

/** Fields that no form has. */
export const ONLY_IN_TEXT: Readonly<Record<EntryList, readonly (readonly string[])[]>> = {
  models: [['estimate'], ['images'], ['videos'], ['pricing', 'with_audio']],
  channels: [],
}

export const readField = (entry: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((value, name) => (value as Record<string, unknown> | null | undefined)?.[name], entry)

const printPairs = (pairs: object, between: string): string =>
  Object.entries(pairs)
    .map(([name, value]) => `${name}: ${value}`)
    .join(between)

const printRecord = ([name, pairs]: [string, object]): string => `${name}: { ${printPairs(pairs, ', ')} }`

export function printField(value: unknown, kind: Kind): string {
  if (value === undefined || value === null) return ''
  if (typeof value !== 'object') return String(value)
  if (kind === 'features')
    return Object.keys(value)
      .filter((name) => readField(value, [name]) === true)
      .join(', ')
  if (kind === 'map') return printPairs(value, '\n')
  if (kind === 'records') return Object.entries(value).map(printRecord).join('\n')
  if (kind === 'rows' && Array.isArray(value)) return value.map((row) => printPairs(row, ', ')).join('\n')
  return Array.isArray(value) ? value.join(kind === 'lines' ? '\n' : ', ') : String(value)
}

/** Fields of rows that are no texts. */
const NUMBERS = ['from_prompt_tokens', 'from_pixels']
const FLAGS = ['discount_server_tools']

const listScalars = (value: unknown): unknown[] =>
  typeof value === 'object' && value !== null ? Object.values(value).flatMap(listScalars) : [value]

const split = (text: string, by: string): string[] =>
  text
    .split(by)
    .map((one) => one.trim())
    .filter((one) => one !== '')

/**
 * Returns the value that a text stands for; null for none. What was written before keeps its type: `5` stays a number.
 * @throws Error for a line without a name
 */
export function parseField(text: string, { kind, options = [] }: FieldSpec, former: unknown): unknown {
  const trimmed = text.trim()
  if (kind === 'features') {
    const ticked = split(trimmed, ',')
    const named = options.filter((name) => ticked.includes(name) || readField(former, [name]) != null)
    return named.length === 0 ? null : Object.fromEntries(named.map((name) => [name, ticked.includes(name)]))
  }
  const known = new Map(listScalars(former).map((one) => [String(one), one]))
  const toScalar = (one: string, name = ''): unknown => {
    if (known.has(one)) return known.get(one)
    if (NUMBERS.includes(name)) return Number(one)
    return FLAGS.includes(name) ? one === 'true' : one
  }
  const toPair = (line: string): [name: string, value: string] => {
    const at = line.indexOf(':')
    if (at <= 0) throw new Error(t('“{line}” has no name with a colon.', { line }))
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()]
  }
  const toPairs = (lines: readonly string[]) =>
    Object.fromEntries(lines.map(toPair).map(([name, value]) => [name, toScalar(value, name)]))
  if (trimmed === '') return null
  if (kind === 'count') return Number(trimmed)
  if (kind === 'flag') return trimmed === 'true'
  if (kind === 'list' || kind === 'choices') return split(trimmed, ',').map((one) => toScalar(one))
  const lines = split(trimmed, '\n')
  if (kind === 'lines') return lines.map((one) => toScalar(one))
  if (kind === 'map') return toPairs(lines)
  if (kind === 'rows') return lines.map((line) => toPairs(split(line, ',')))
  if (kind === 'records')
    return Object.fromEntries(
      lines.map(toPair).map(([name, pairs]) => [name, toPairs(split(pairs.replace(/^\{|\}$/g, ''), ','))]),
    )
  return trimmed
}

/** Whether a form can hold what is written: it comes back from the form as it was. */
export function fitsForm(spec: FieldSpec, value: unknown): boolean {
  const printed = printField(value, spec.kind)
  if (printed === '' || spec.kind === 'features') return true
  try {
    return JSON.stringify(parseField(printed, spec, value)) === JSON.stringify(value)
  } catch {
    return false
  }
}
