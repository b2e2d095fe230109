/** A place to try a model. Its calls are charged like any other. */

import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useId, useMemo, useRef, useState } from 'react'
import { printCredits } from '../../../../schemas/money.ts'
import { catalogQuery } from '../../api/catalog.ts'
import { ApiError } from '../../api/client.ts'
import { useAccount } from '../../api/session.ts'
import { printCurl } from '../../curl.ts'
import { printNumber } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Form, TextAreaField } from '../../ui/form.tsx'
import { Badge, EmptyState, ErrorState, PageHeader, Panel, QueryState, Skeleton } from '../../ui/states.tsx'
import { CodeBlock, Id, Money } from '../../ui/text.tsx'
import { computeCostAfter, measurePrompt, readPrice } from './cost.ts'
import { makeBody, type Picture, readTools, type Settings, type Turn } from './request.ts'
import { CHAT_PATH } from './send.ts'
import { SettingsPanel } from './settings.tsx'
import { type Run, useRun } from './use-run.ts'

const route = getRouteApi('/signed-in/playground')

const DEFAULTS: Omit<Settings, 'model'> = {
  system: '',
  stream: true,
  temperature: null,
  topP: null,
  maxTokens: null,
  reasoningEffort: null,
  tools: '',
}

const dataUrl = (file: File): Promise<Picture> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve({ name: file.name, url: String(reader.result) })
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(file)
  })

const roleNames = () => ({ user: t('You'), assistant: t('Model'), tool: t('Tool') })

function TurnView({ turn }: { turn: Turn }) {
  return (
    <li className="border-line border-b px-4 py-3">
      <p className="pb-1 font-medium text-quiet text-xs">{roleNames()[turn.role]}</p>
      <p className="whitespace-pre-wrap break-words">{turn.text}</p>
      {turn.pictures && turn.pictures.length > 0 && (
        <p className="mt-1 text-quiet text-sm">{turn.pictures.map(({ name }) => name).join(', ')}</p>
      )}
      {turn.toolCalls?.map(({ id, name, arguments: given }) => (
        <pre key={id} className="mt-2 overflow-x-auto rounded-md bg-raised p-2 font-mono text-xs">
          {name}({given})
        </pre>
      ))}
    </li>
  )
}

/** The cost of the call, while the answer arrives and after it. */
function CostLine({ run, accountId }: { run: Run; accountId: string }) {
  const { data: models = [] } = useQuery(catalogQuery)
  const pricing = models.find(({ id }) => id === run.model)?.pricing
  const price = useMemo(() => (pricing ? readPrice(pricing) : null), [pricing])
  const prompt = useMemo(() => measurePrompt(run.body), [run.body])
  const cost = price === null ? null : computeCostAfter(run.error, price, prompt, run.answer, Date.now())
  return (
    <div className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3 text-sm">
      {cost && (
        <>
          <span>
            {cost.isEstimate && '≈ '}
            <strong>
              <Money amount={printCredits(cost.credits)} />
            </strong>{' '}
            {t('credits')}
          </span>
          <span className="tabular text-quiet">
            {t('{input} tokens in, {output} out', {
              input: printNumber(cost.promptTokens),
              output: printNumber(cost.outputTokens),
            })}
          </span>
          {cost.isEstimate && <Badge>{t('Estimate')}</Badge>}
        </>
      )}
      {run.error instanceof ApiError && <span>{t('Not charged')}</span>}
      {run.requestId !== null && (
        <>
          {run.error === null && <Id id={run.requestId} />}
          {!run.isRunning && (
            <Link
              to="/calls"
              search={{ account: accountId, ref: run.requestId, period: 'all' }}
              className="text-accent hover:underline"
            >
              {t('Show the call')}
            </Link>
          )}
        </>
      )}
    </div>
  )
}

function AnswerView({ run, accountId }: { run: Run; accountId: string }) {
  const { answer, error, isRunning } = run
  return (
    <>
      <div aria-live="polite" aria-busy={isRunning} className="border-line border-b px-4 py-3">
        <p className="pb-1 font-medium text-quiet text-xs">{t('Model')}</p>
        {answer.reasoning !== '' && (
          <details className="mb-2 text-quiet text-sm">
            <summary>{t('Reasoning')}</summary>
            <p className="whitespace-pre-wrap">{answer.reasoning}</p>
          </details>
        )}
        <p className="whitespace-pre-wrap break-words">{answer.text}</p>
        {answer.toolCalls.map(({ id, name, arguments: given }) => (
          <pre key={id} className="mt-2 overflow-x-auto rounded-md bg-raised p-2 font-mono text-xs">
            {name}({given})
          </pre>
        ))}
        {answer.error !== null && <p className="text-bad">{answer.error}</p>}
        {isRunning && answer.characters === 0 && <Skeleton rows={2} />}
      </div>
      <ErrorState error={error} />
      <CostLine run={run} accountId={accountId} />
    </>
  )
}

interface ComposerProps {
  readonly isRunning: boolean
  /** True while the settings show a problem. */
  readonly isBlocked: boolean
  readonly canReadImages: boolean
  /** The tool call that the next message answers. */
  readonly toolCall: { readonly id: string; readonly name: string } | null
  onSend(turn: Turn): void
  onStop(): void
}

function Composer({ isRunning, isBlocked, canReadImages, toolCall, onSend, onStop }: ComposerProps) {
  const [text, setText] = useState('')
  const [pictures, setPictures] = useState<readonly Picture[]>([])
  const input = useRef<HTMLInputElement>(null)
  const id = useId()
  const send = () => {
    if (text.trim() === '' && pictures.length === 0) return
    onSend(
      toolCall === null ? { role: 'user', text, pictures } : { role: 'tool', text, toolCallId: toolCall.id },
    )
    setText('')
    setPictures([])
    if (input.current) input.current.value = ''
  }
  return (
    <Form onSubmit={send} className="flex flex-col gap-3 p-4">
      <TextAreaField
        label={toolCall === null ? t('Message') : t('Result of {name}', { name: toolCall.name })}
        rows={3}
        value={text}
        onText={setText}
      />
      <div className="flex flex-wrap items-center justify-between gap-3">
        {canReadImages && toolCall === null ? (
          <div>
            <label htmlFor={id} className="mr-2 text-sm">
              {t('Images')}
            </label>
            <input
              id={id}
              ref={input}
              type="file"
              accept="image/*"
              multiple
              className="max-w-full text-sm"
              onChange={({ target }) =>
                void Promise.all([...(target.files ?? [])].map(dataUrl)).then(setPictures)
              }
            />
          </div>
        ) : (
          <span />
        )}
        {isRunning ? (
          <Button onClick={onStop}>{t('Stop')}</Button>
        ) : (
          <Button type="submit" kind="primary" disabled={isBlocked}>
            {t('Send')}
          </Button>
        )}
      </div>
    </Form>
  )
}

interface NumberedTurn extends Turn {
  /** Its index: a conversation only grows. */
  readonly number: number
}

export function Playground() {
  const { account_id: accountId } = useAccount()
  const { model: asked } = route.useSearch()
  const catalog = useQuery(catalogQuery)
  const models = catalog.data?.filter(({ endpoint_type }) => endpoint_type === null) ?? []
  const chosen = models.find(({ id, aliases }) => id === asked || aliases.includes(asked ?? '')) ?? models[0]
  const [given, setGiven] = useState(DEFAULTS)
  const [turns, setTurns] = useState<readonly NumberedTurn[]>([])
  const { run, start, stop, clear } = useRun({ accountId })
  if (!catalog.isSuccess) return <QueryState query={catalog} rows={8} />
  if (chosen === undefined) return <EmptyState title={t('The catalog has no chat model.')} />
  const settings: Settings = { ...given, model: chosen.id }
  const isRunning = run?.isRunning === true
  const answered: readonly Turn[] =
    run === null || isRunning || run.answer.characters === 0
      ? turns
      : [...turns, { role: 'assistant', text: run.answer.text, toolCalls: run.answer.toolCalls }]
  // Each tool call is answered before the conversation continues.
  const calls = answered.flatMap(({ toolCalls = [] }) => toolCalls)
  const done = new Set(answered.flatMap(({ toolCallId }) => toolCallId ?? []))
  const [toolCall = null, ...others] = calls.filter(({ id }) => !done.has(id))
  const onSend = (turn: Turn) => {
    const next = [...answered, turn].map((one, number) => ({ ...one, number }))
    setTurns(next)
    if (others.length > 0) clear()
    else start(settings.model, makeBody(settings, next))
  }
  const draft = makeBody(settings, turns.length > 0 ? turns : [{ role: 'user', text: 'Hello!' }])
  return (
    <>
      <PageHeader
        title={t('Playground')}
        description={t('These are ordinary calls with ordinary charges. Their key expires after an hour.')}
        actions={
          <Button
            disabled={turns.length === 0}
            onClick={() => {
              clear()
              setTurns([])
            }}
          >
            {t('New conversation')}
          </Button>
        }
      />
      <div className="grid items-start gap-5 lg:grid-cols-[20rem_minmax(0,1fr)]">
        <SettingsPanel
          settings={settings}
          models={models}
          onChange={(changes) => setGiven((before) => ({ ...before, ...changes }))}
        />
        <div className="flex min-w-0 flex-col gap-5">
          <Panel>
            <ol>
              {turns.map((turn) => (
                <TurnView key={turn.number} turn={turn} />
              ))}
            </ol>
            {run && <AnswerView run={run} accountId={accountId} />}
            <Composer
              isRunning={isRunning}
              isBlocked={readTools(settings.tools).problem !== null}
              canReadImages={chosen.capabilities.vision}
              toolCall={isRunning ? null : toolCall}
              onSend={onSend}
              onStop={stop}
            />
          </Panel>
          <CodeBlock
            label={t('The same call in a shell')}
            code={printCurl(location.origin, CHAT_PATH, draft, { isPretty: true })}
          />
        </div>
      </div>
    </>
  )
}
