/** The models that the service offers, with their prices and first calls for each SDK. */

import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { PublicModel } from '../../../../schemas/accounts/models.ts'
import { catalogQuery } from '../../api/catalog.ts'
import { keepShown } from '../../api/read.ts'
import { useChangeSearch } from '../../change-search.ts'
import { printNumber } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Drawer } from '../../ui/dialog.tsx'
import { Field } from '../../ui/form.tsx'
import { OpenLink } from '../../ui/open-link.tsx'
import { Badge, EmptyState, Fact, FactPanel, PageHeader, Panel, QueryState } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { CodeBlock, CopyButton, Time } from '../../ui/text.tsx'
import { capabilityName, endpointName, unitName } from '../../ui/units.ts'
import { SnippetTabs } from '../first-call/first-call.tsx'
import { makeSnippets } from '../first-call/snippets.ts'

const route = getRouteApi('/signed-in/models')

type Pricing = NonNullable<PublicModel['pricing']>

/** Prints the prices of units in one line. */
function unitPrices({ per_unit, variants, with_audio }: Omit<Pricing, 'unit' | 'changes'>): string {
  const prices = per_unit ?? Object.values(variants ?? {}).join(' / ')
  const withSound = with_audio?.per_unit ?? Object.values(with_audio?.variants ?? {}).join(' / ')
  return withSound === '' ? prices : t('{prices}, with audio {other}', { prices, other: withSound })
}

/** Prints the price in one line, in credits. */
function printPrice(pricing: Pricing | null): ReactNode {
  if (pricing === null) return <span className="text-quiet">–</span>
  if (pricing.unit === '1M_tokens')
    return (
      <>
        {pricing.input} <span className="text-quiet">→</span> {pricing.output}
      </>
    )
  return (
    <>
      {unitPrices(pricing)} <span className="text-quiet">/ {unitName(pricing.unit)}</span>
    </>
  )
}

const printTokens = (count: number | null): string => (count === null ? '–' : printNumber(count))

const listCapabilities = ({ capabilities }: PublicModel): string[] =>
  (Object.keys(capabilities) as (keyof typeof capabilities)[]).flatMap((name) =>
    capabilities[name] ? [capabilityName(name)] : [],
  )

type Prices = Omit<Pricing['tiers'][number], 'from_prompt_tokens' | 'input' | 'output'> &
  Pick<Pricing, 'input' | 'output'>

/** Returns the kinds of tokens whose price differs from the usual input or output price. */
function listOwnKinds(pricing: Prices): [name: string, price: string | null][] {
  const { input, output } = pricing
  const kinds: [name: string, price: string | null, usual: string | null][] = [
    [t('One-hour cache write'), pricing.cache_write_1h, null],
    [t('Audio input'), pricing.input_audio, input],
    [t('Image input'), pricing.input_image, input],
    [t('Reasoning'), pricing.reasoning, output],
    [t('Audio output'), pricing.output_audio, output],
    [t('Image output'), pricing.output_image, output],
  ]
  return kinds.flatMap(([name, price, usual]) => (price === usual ? [] : [[name, price]]))
}

/** Prints all prices of tokens in one line. */
const tokenPrices = (pricing: Prices): string =>
  [
    t('{input} input, {cached} cached, {write} cache write, {output} output', {
      input: pricing.input,
      cached: pricing.cached_input,
      write: pricing.cache_write,
      output: pricing.output,
    }),
    ...listOwnKinds(pricing).map(([name, price]) => `${name} ${price}`),
  ].join(', ')

function PricePanel({ pricing }: { pricing: Pricing }) {
  const single = [
    [t('Input'), pricing.input],
    [t('Cached input'), pricing.cached_input],
    [t('Cache write'), pricing.cache_write],
    [t('Output'), pricing.output],
    ...(pricing.unit === '1M_tokens' ? listOwnKinds(pricing) : []),
    [t('Each unit'), pricing.per_unit],
    [t('Each input image'), pricing.unit === '1M_tokens' ? null : pricing.input_image],
    [t('Each call of a provider tool'), pricing.server_tool_call],
    ...Object.entries(pricing.server_tools ?? {}).map(([tool, price]) => [
      t('Each call of {tool}', { tool: tool.replaceAll('_', ' ') }),
      price,
    ]),
    ...Object.entries(pricing.service_tiers ?? {}).map(([tier, factor]) => [
      t('Service tier {tier}', { tier }),
      `× ${factor}`,
    ]),
    [t('Minimum per call'), pricing.minimum],
    ...Object.entries(pricing.variants ?? {}),
    [t('Each unit with audio'), pricing.with_audio?.per_unit],
    ...Object.entries(pricing.with_audio?.variants ?? {}).map(([variant, price]) => [
      t('{variant} with audio', { variant }),
      price,
    ]),
    ...pricing.pixel_tiers.map(({ from_pixels, per_unit }) => [
      t('From {count} pixels', { count: printTokens(from_pixels) }),
      per_unit,
    ]),
  ]
  const title =
    pricing.unit === '1M_tokens'
      ? t('Prices in credits per million tokens')
      : t('Prices in credits per {unit}', { unit: unitName(pricing.unit) })
  return (
    <FactPanel title={title}>
      {single.map(([name, price]) => price != null && <Fact key={name} name={String(name)} value={price} />)}
      {pricing.tiers.map((tier) => (
        <Fact
          key={tier.from_prompt_tokens}
          name={t('From {count} input tokens', { count: printTokens(tier.from_prompt_tokens) })}
          value={tokenPrices(tier)}
        />
      ))}
      {pricing.changes.map((change) => (
        <Fact
          key={change.from}
          name={t('Planned')}
          value={
            <>
              {pricing.unit === '1M_tokens' ? tokenPrices(change) : unitPrices(change)}{' '}
              <Time at={change.from} />
            </>
          }
        />
      ))}
      {pricing.discount && (
        <Fact
          name={t('Discount')}
          value={
            <>
              × {pricing.discount} {pricing.discount_until && t('until')}{' '}
              {pricing.discount_until && <Time at={pricing.discount_until} />}
            </>
          }
        />
      )}
    </FactPanel>
  )
}

function Snippets({ model }: { model: PublicModel }) {
  const snippets = makeSnippets(model, { origin: location.origin })
  if (snippets.length === 0)
    return (
      <p className="text-quiet">
        {t('See the reference for the requests of this endpoint:')}{' '}
        <a className="text-accent underline" href="/docs">
          /docs
        </a>
      </p>
    )
  return <SnippetTabs snippets={snippets} />
}

function ModelInFull({ model }: { model: PublicModel }) {
  return (
    <>
      <div className="flex flex-wrap items-center gap-2">
        <code className="font-mono">{model.id}</code>
        <CopyButton text={model.id} />
        {model.endpoint_type === null && (
          <Link
            to="/playground"
            search={({ account }) => ({ account, model: model.id })}
            className="text-accent underline"
          >
            {t('Try it in the playground')}
          </Link>
        )}
      </div>
      <FactPanel>
        <Fact name={t('Made by')} value={model.owned_by} />
        {model.context_window !== null && (
          <Fact
            name={t('Context')}
            value={t('{count} tokens', { count: printTokens(model.context_window) })}
          />
        )}
        {model.max_output_tokens !== null && (
          <Fact
            name={t('Maximum output')}
            value={t('{count} tokens', { count: printTokens(model.max_output_tokens) })}
          />
        )}
        {model.supported_protocols.length > 0 && (
          <Fact name={t('Protocols')} value={model.supported_protocols.join(', ')} />
        )}
        {model.translated_protocols.length > 0 && (
          <Fact name={t('Translated protocols')} value={model.translated_protocols.join(', ')} />
        )}
        {model.endpoint_type && <Fact name={t('Endpoint')} value={endpointName(model.endpoint_type)} />}
        {model.aliases.length > 0 && <Fact name={t('Also known as')} value={model.aliases.join(', ')} />}
        {listCapabilities(model).length > 0 && (
          <Fact name={t('Capabilities')} value={listCapabilities(model).join(', ')} />
        )}
        {model.videos?.default_audio && (
          <Fact name={t('Audio')} value={t('Generated unless a request says otherwise')} />
        )}
      </FactPanel>
      {model.pricing && <PricePanel pricing={model.pricing} />}
      <Snippets model={model} />
    </>
  )
}

export function Models() {
  const { q = '', model: open } = route.useSearch()
  const change = useChangeSearch()
  const models = keepShown(useQuery(catalogQuery))
  const wanted = q.toLowerCase()
  const shown = (models.data ?? []).filter(({ id, display_name, owned_by, aliases }) =>
    [id, display_name, owned_by, ...aliases].some((text) => text.toLowerCase().includes(wanted)),
  )
  const opened = models.data?.find(({ id }) => id === open)
  const columns: Column<PublicModel>[] = [
    {
      name: t('Model'),
      cell: ({ id, display_name }) => <OpenLink search={{ model: id }}>{display_name}</OpenLink>,
    },
    {
      name: t('For'),
      cell: ({ endpoint_type }) => <Badge>{endpointName(endpoint_type)}</Badge>,
    },
    { name: t('Context'), isNumber: true, cell: ({ context_window }) => printTokens(context_window) },
    { name: t('Price in credits'), isNumber: true, isText: true, cell: ({ pricing }) => printPrice(pricing) },
    {
      name: t('Capabilities'),
      isText: true,
      cell: (model) => <span className="text-quiet">{listCapabilities(model).join(', ')}</span>,
    },
  ]
  return (
    <>
      <PageHeader
        title={t('Models')}
        description={t('Prices of chat models are per million tokens: input → output.')}
      />
      <div className="mb-4 max-w-sm">
        <Field
          label={t('Find')}
          type="search"
          value={q}
          onText={(text) => change({ q: text }, { isReplaced: true })}
        />
      </div>
      <Panel>
        <QueryState query={models} rows={8} />
        {models.isSuccess && shown.length === 0 && (
          <EmptyState title={t('No models match.')}>
            <CodeBlock label="curl" code={`curl ${location.origin}/api/v1/models/public`} />
          </EmptyState>
        )}
        {shown.length > 0 && <Table isAdjustable caption={t('Models')} columns={columns} rows={shown} />}
      </Panel>
      <Drawer
        isBeside
        title={opened?.display_name ?? t('Model')}
        isOpen={opened !== undefined}
        onClose={() => change({ model: undefined })}
      >
        {opened && <ModelInFull model={opened} />}
      </Drawer>
    </>
  )
}
