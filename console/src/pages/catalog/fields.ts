/** The fields of the forms of a model and a channel. */
import {
  AFTER_CLIENT_LEAVES,
  CHAT_PROTOCOLS,
  ENDPOINT_TYPES,
  KEY_HEADERS,
  OUTPUT_LIMIT_FIELDS,
  PRICE_UNITS,
  SERVER_TOOLS,
  STRATEGIES,
  UPSTREAM_ERRORS,
} from '../../../../schemas/config/catalog.ts'
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

const showLine = (example: string): string => t('One line for each: {example}', { example })

const listModelGroups = (): readonly FieldGroup[] => [
  {
    title: t('Name and limits'),
    fields: [
      field('display_name', t('Display name')),
      field('aliases', t('Aliases'), 'list', t('Separated by commas.')),
      field('family', t('Family')),
      field('owned_by', t('Owned by')),
      field('callable', t('Callable'), 'flag'),
      choice('endpoint_type', t('Endpoint'), ENDPOINT_TYPES),
      field('context_window', t('Context window, tokens'), 'count'),
      field('max_output_tokens', t('Most output tokens'), 'count'),
      field('default_max_tokens', t('Output tokens without a limit'), 'count'),
      choice(
        'capabilities',
        t('Capabilities'),
        ['vision', 'function_tools', 'reasoning', ...SERVER_TOOLS],
        'features',
      ),
    ],
  },
  {
    title: t('Prices'),
    fields: [
      choice('pricing.unit', t('Price per'), PRICE_UNITS),
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
        showLine('from_prompt_tokens: 200000, input: 5, output: 20'),
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
      field('pricing.variants', t('Variants'), 'map', showLine('1080p: 12')),
      field(
        'pricing.service_tiers',
        t('Service tiers'),
        'map',
        t('Factors on the price, such as flex: 0.5.'),
      ),
      field('pricing.server_tools', t('Prices of single tools'), 'map', showLine('web_search: 2')),
      field(
        'pricing.pixel_tiers',
        t('Price tiers by pixels'),
        'rows',
        showLine('from_pixels: 1000000, per_unit: 4'),
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
        showLine('from: 2026-12-31T00:00:00Z, input: 5, output: 20'),
      ),
    ],
  },
  {
    title: t('Order and failures'),
    fields: [
      choice('strategy', t('Order of channels'), STRATEGIES),
      field('fallbacks', t('Fallback models'), 'list', t('Separated by commas.')),
      choice('after_client_leaves', t('After the client leaves'), AFTER_CLIENT_LEAVES),
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
      choice('key_header', t('Header of the key'), KEY_HEADERS),
      field(
        'api_keys',
        t('API keys'),
        'lines',
        t('One a line, used in turn. A line of asterisks is a hidden key: it stays as it is.'),
      ),
      field('headers', t('Headers'), 'map', showLine('X-Team: ${TEAM}')),
      field('auth', t('Access without a key'), 'map', showLine('type: aws-sigv4')),
    ],
  },
  {
    title: t('Order and failures'),
    fields: [
      field('priority', t('Priority'), 'count', t('Lower first.')),
      field('weight', t('Weight'), 'count', t('The share among channels of one priority.')),
      field('timeout_seconds', t('Timeout, seconds'), 'count'),
      choice('upstream_errors', t("The provider's errors"), UPSTREAM_ERRORS),
      field('hide_auth_errors', t('Hide errors of the key'), 'flag'),
    ],
  },
  {
    title: t('What the provider charges'),
    fields: [
      field('cost', t('Cost'), 'records', showLine('sonata: { unit: 1M_tokens, input: 2, output: 8 }')),
    ],
  },
  {
    title: t('Protocol'),
    fields: [
      choice('serve', t('Protocols that the gateway translates'), CHAT_PROTOCOLS, 'choices'),
      choice('converts', t('Protocols that the provider converts'), CHAT_PROTOCOLS, 'choices'),
      choice('tools', t('Tools that the provider runs'), SERVER_TOOLS, 'choices'),
      field('quirks', t('Quirks'), 'list', t('Separated by commas.')),
      choice('output_limit_field', t('Field of the output limit'), OUTPUT_LIMIT_FIELDS),
      field('keeps_responses_days', t('Days that it keeps responses'), 'count'),
      field('keeps_conversations', t('Keeps conversations'), 'flag'),
      field('private_links', t('Links to private addresses'), 'flag'),
      field('storage_uri', t('Folder of videos'), 'text', 'gs://my-bucket/films'),
      field('input_names', t('Names of input fields'), 'map', showLine('image: image_url')),
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
