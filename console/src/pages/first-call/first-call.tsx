/** What to paste for a first call, with a model and a key that work; below it the call, when it arrives. */
import { Tabs } from '@base-ui/react/tabs'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { PublicModel } from '../../../../schemas/accounts/models.ts'
import { CLIENTS, type Client } from '../../../../schemas/clients.ts'
import type { LiveCall } from '../../../../schemas/management/live.ts'
import { fillFields, printSettings } from '../../../../src/core/clients/settings.ts'
import { catalogQuery } from '../../api/catalog.ts'
import { linkTo } from '../../api/client.ts'
import { useLive } from '../../api/live.ts'
import { printCurl } from '../../curl.ts'
import { t } from '../../i18n.ts'
import { SelectField } from '../../ui/form.tsx'
import { QueryState } from '../../ui/states.tsx'
import { CodeBlock, Money, TextLink } from '../../ui/text.tsx'
import { listProtocols, makeSnippets, type Snippet } from './snippets.ts'

/** In place of a key that the page does not know. */
const UNKNOWN_KEY = 'YOUR_KEY'
/** A snippet for each language; the clients follow. */
const LANGUAGES: ReadonlySet<string> = new Set(['curl', 'openai-py', 'openai-js'])

interface FirstCallProps {
  readonly accountId: string
  /** The key itself, where the page knows it, with what it may call. */
  readonly secret?: { readonly id: string; readonly key: string; readonly models: readonly string[] | null }
  /** Default: true. */
  readonly isAwaited?: boolean
}

export function FirstCall({ accountId, secret, isAwaited = true }: FirstCallProps) {
  const catalog = useQuery(catalogQuery)
  const allowed = secret?.models ?? null
  const models = (catalog.data ?? []).filter(
    ({ id, endpoint_type }) => endpoint_type === null && (allowed === null || allowed.includes(id)),
  )
  const [chosen, setChosen] = useState<string>()
  const model = models.find(({ id }) => id === chosen) ?? models[0]
  if (catalog.data === undefined) return <QueryState query={catalog} rows={4} />
  if (model === undefined)
    return <p className="text-quiet">{t('There is no chat model that this key may call.')}</p>
  return (
    <div className="flex flex-col gap-3">
      <SelectField
        label={t('Model')}
        value={model.id}
        options={models.map(({ id, display_name: name }) => [id, name ?? id])}
        onText={setChosen}
      />
      <SnippetTabs
        snippets={[
          ...makeSnippets(model, { origin: location.origin, key: secret?.key }).filter(({ id }) =>
            LANGUAGES.has(id),
          ),
          ...Object.entries(CLIENTS).map(([id, client]) =>
            printClient(id, client, pickModel(client, model, models), secret?.key),
          ),
        ]}
      />
      {isAwaited && <Arrival accountId={accountId} keyId={secret?.id} />}
    </div>
  )
}

/** Returns the chosen model, or one that the client can reach where that has none of its protocol. */
const pickModel = ({ protocol }: Client, chosen: PublicModel, models: readonly PublicModel[]): PublicModel =>
  [chosen, ...models].find((model) => listProtocols(model).includes(protocol)) ?? chosen

function printClient(
  id: string,
  { title, files, folder }: Client,
  model: PublicModel,
  key = UNKNOWN_KEY,
): Snippet {
  const values = { base_url: location.origin, key, model: model.id }
  const texts = files.map((file) => {
    const path = [...(file.format === 'by hand' ? [] : ['~', folder.default]), file.names.at(-1)!]
    return [path.filter((part) => part !== '').join('/'), printSettings(fillFields(file, values))] as const
  })
  return {
    id,
    label: title,
    code: texts.length === 1 ? texts[0]![1] : texts.map(([path, text]) => `# ${path}\n${text}`).join('\n'),
    ...(texts.length === 1 && { title: texts[0]![0] }),
  }
}

interface FirstCurlProps {
  readonly path: string
  /** Null for chat. */
  readonly endpointType: string | null
  readonly body: object
  readonly headers?: readonly string[]
}

/** Shows a call to an endpoint, with a model that has it. */
export function FirstCurl({ path, endpointType, body, headers = [] }: FirstCurlProps) {
  const { data = [] } = useQuery(catalogQuery)
  const model = data.find(({ endpoint_type }) => endpoint_type === endpointType)
  if (model === undefined) return null
  return (
    <CodeBlock
      label="curl"
      code={printCurl(location.origin, path, { model: model.id, ...body }, { headers })}
    />
  )
}

/** Shows one snippet at a time. */
export const SnippetTabs = ({ snippets }: { readonly snippets: readonly Snippet[] }) => (
  <Tabs.Root defaultValue={snippets[0]?.id}>
    <Tabs.List className="mb-2 flex flex-wrap gap-1" aria-label={t('Program')}>
      {snippets.map(({ id, label }) => (
        <Tabs.Tab
          key={id}
          value={id}
          className="rounded-md px-2.5 py-1 text-quiet text-sm hover:bg-raised aria-selected:bg-accent-wash aria-selected:text-accent"
        >
          {label}
        </Tabs.Tab>
      ))}
    </Tabs.List>
    {snippets.map(({ id, label, title = label, code }) => (
      <Tabs.Panel key={id} value={id}>
        <CodeBlock label={title} code={code} />
      </Tabs.Panel>
    ))}
  </Tabs.Root>
)

interface ArrivalProps {
  readonly accountId: string
  /** Default: any key. */
  readonly keyId?: string | undefined
}

/** Waits for a call, and shows it with what it cost. */
export function Arrival({ accountId, keyId }: ArrivalProps) {
  const [call, setCall] = useState<LiveCall>()
  useLive(
    call === undefined ? linkTo('watchCalls', { account_id: accountId, key_id: keyId }) : null,
    ['call'],
    (_, data) => setCall(data as LiveCall),
  )
  return (
    <p role="status" className="rounded-md border border-line bg-raised px-3 py-2 text-sm">
      {call === undefined ? (
        <span className="text-quiet">{t('Waiting for your first call…')}</span>
      ) : (
        <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <strong>
            {call.status === 'success'
              ? t('Your first call has arrived.')
              : t('A call arrived, but it failed.')}
          </strong>
          <code className="font-mono text-xs">{call.model}</code>
          <span>
            <Money amount={call.cost} /> {t('credits')}
          </span>
          {call.error_code !== null && <span>{call.error_code}</span>}
          <TextLink isAmongWords to="/calls" search={{ account: accountId }}>
            {t('Show it in the log')}
          </TextLink>
        </span>
      )}
    </p>
  )
}
