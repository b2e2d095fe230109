/** A place to try a model. Its calls are charged like any other. */

import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useEffect, useId, useRef, useState } from 'react'
import { catalogQuery } from '../../api/catalog.ts'
import { keepShown } from '../../api/read.ts'
import { useAccount, useSession } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { useFields } from '../../ui/fields.ts'
import { Form, TextAreaField } from '../../ui/form.tsx'
import { EmptyState, PageHeader, Panel, QueryState } from '../../ui/states.tsx'
import { Time } from '../../ui/text.tsx'
import { SnippetTabs } from '../first-call/first-call.tsx'
import { printCode } from './code.ts'
import { Runs, TurnView } from './conversation.tsx'
import { type Conversation, forgetConversation, keepConversation, listConversations } from './history.ts'
import { type AnswerTurn, makeBody, type Picture, readTools, type Settings, type Turn } from './request.ts'
import { CHAT_PATH } from './send.ts'
import { SettingsPanel } from './settings.tsx'
import { type Run, useRun } from './use-run.ts'

const route = getRouteApi('/signed-in/playground')

interface ConversationState extends Omit<Settings, 'model'> {
  /** The second model that answers; empty for none. */
  readonly compared: string
  /** The message that is being written. */
  readonly text: string
  readonly turns: readonly Turn[]
  /** Finds the conversation in the history; empty until its first message. */
  readonly id: string
}

const NEW_CONVERSATION: ConversationState = {
  system: '',
  stream: true,
  temperature: null,
  topP: null,
  maxTokens: null,
  reasoningEffort: null,
  tools: '',
  compared: '',
  text: '',
  turns: [],
  id: '',
}

const dataUrl = (file: File): Promise<Picture> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve({ name: file.name, url: String(reader.result) })
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(file)
  })

interface ComposerProps {
  readonly text: string
  onText(text: string): void
  readonly isRunning: boolean
  /** True while the settings show a problem. */
  readonly isBlocked: boolean
  readonly canReadImages: boolean
  /** The tool call that the next message answers. */
  readonly toolCall: { readonly id: string; readonly name: string } | null
  onSend(turn: Turn): void
  onStop(): void
}

function Composer(props: ComposerProps) {
  const { text, onText, isRunning, isBlocked, canReadImages, toolCall, onSend, onStop } = props
  const [pictures, setPictures] = useState<readonly Picture[]>([])
  const input = useRef<HTMLInputElement>(null)
  const id = useId()
  const send = () => {
    if (isRunning || isBlocked || (text.trim() === '' && pictures.length === 0)) return
    onSend(
      toolCall === null ? { role: 'user', text, pictures } : { role: 'tool', text, toolCallId: toolCall.id },
    )
    setPictures([])
    if (input.current) input.current.value = ''
  }
  return (
    <Form onSubmit={send} className="flex flex-col gap-3 p-4">
      <TextAreaField
        label={toolCall === null ? t('Message') : t('Result of {name}', { name: toolCall.name })}
        rows={3}
        hint={t('Ctrl+Enter sends it.')}
        value={text}
        onText={onText}
        onKeyDown={({ key, ctrlKey, metaKey }) => key === 'Enter' && (ctrlKey || metaKey) && send()}
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

/** Returns the answer of a call as a turn; null while it runs, or if none came. */
function toAnswerTurn({ model, answer, requestId, isRunning, ending }: Run): AnswerTurn | null {
  if (isRunning || answer.characters === 0) return null
  const { text, reasoning, toolCalls, error } = answer
  return { role: 'assistant', model, text, reasoning, toolCalls, requestId, ending, error }
}

/** The turns as the model that is compared sees them. */
const takeCompared = (turns: readonly Turn[]): Turn[] =>
  turns.map((turn) => (turn.role === 'assistant' && turn.compared ? turn.compared : turn))

const MAX_TITLE_CHARS = 80

interface HistoryProps {
  readonly owner: string
  readonly present: string
  onOpen(conversation: Conversation): void
}

function History({ owner, present, onOpen }: HistoryProps) {
  const [, renderAgain] = useState(0)
  const conversations = listConversations(owner)
  if (conversations.length === 0) return null
  return (
    <Panel title={t('History')}>
      <ul className="max-h-80 divide-y divide-line overflow-y-auto">
        {conversations.map((conversation) => {
          const { id, at, model, turns } = conversation
          const title = turns[0]?.text.slice(0, MAX_TITLE_CHARS) ?? model
          return (
            <li key={id} className="flex items-center gap-2 px-4 py-2">
              <button
                type="button"
                aria-current={id === present}
                className="min-w-0 flex-1 text-left hover:text-accent aria-[current=true]:font-medium"
                onClick={() => onOpen(conversation)}
              >
                <span className="block truncate">{title}</span>
                <span className="text-quiet text-xs">
                  {model} · <Time at={at} />
                </span>
              </button>
              <Button
                kind="quiet"
                aria-label={t('Remove {name}', { name: title })}
                onClick={() => {
                  forgetConversation(owner, id)
                  renderAgain((count) => count + 1)
                }}
              >
                {t('Remove')}
              </Button>
            </li>
          )
        })}
      </ul>
    </Panel>
  )
}

/** The state of a conversation: what was said and set, and the calls that answer it. */
function useConversation(accountId: string, model: string) {
  const owner = `${useSession().user.id} ${accountId}`
  const form = useFields(`playground of ${accountId}`, NEW_CONVERSATION)
  const { turns, compared } = form.values
  const first = useRun({ accountId })
  const second = useRun({ accountId }, 'compared')
  const runs = [first.run, second.run].filter((run) => run !== null)
  const isRunning = runs.some((run) => run.isRunning)
  const answer = isRunning || first.run === null ? null : toAnswerTurn(first.run)
  const other = second.run === null ? null : toAnswerTurn(second.run)
  const clear = () => {
    first.clear()
    second.clear()
  }
  // An answer may have ended while another page was shown.
  useEffect(() => {
    if (answer === null || (second.run !== null && other === null)) return
    const next = [...turns, { ...answer, ...(other !== null && { compared: other }) }]
    form.set({ turns: next })
    keepConversation(owner, { id: form.values.id, at: new Date().toISOString(), model, turns: next })
    clear()
  })
  const start = (next: readonly Turn[]) => {
    const settings = { ...form.values, model }
    clear()
    first.start(model, makeBody(settings, next))
    if (compared !== '' && settings.tools === '')
      second.start(compared, makeBody({ ...settings, model: compared }, takeCompared(next)))
  }
  const stop = () => {
    first.stop()
    second.stop()
  }
  return { owner, form, runs, isRunning, start, stop, clear }
}

export function Playground() {
  const { account_id: accountId } = useAccount()
  const { model: asked } = route.useSearch()
  const catalog = keepShown(useQuery(catalogQuery))
  const models = catalog.data?.filter(({ endpoint_type }) => endpoint_type === null) ?? []
  const chosen = models.find(({ id, aliases }) => id === asked || aliases.includes(asked ?? '')) ?? models[0]
  const change = useChangeSearch()
  const { owner, form, runs, isRunning, start, stop, clear } = useConversation(accountId, chosen?.id ?? '')
  if (!catalog.isSuccess) return <QueryState query={catalog} rows={8} />
  if (chosen === undefined) return <EmptyState title={t('There are no chat models in the catalog.')} />
  const { turns, text, id } = form.values
  const settings = { ...form.values, model: chosen.id }
  // Each tool call is answered before the conversation continues.
  const calls = turns.flatMap(({ toolCalls = [] }) => toolCalls)
  const done = new Set(turns.flatMap((turn) => (turn.role === 'tool' ? (turn.toolCallId ?? []) : [])))
  const [toolCall = null, ...others] = calls.filter(({ id }) => !done.has(id))
  const onSend = (turn: Turn) => {
    const next = [...turns, turn]
    form.set({ turns: next, text: '', id: id === '' ? crypto.randomUUID() : id })
    if (others.length > 0) clear()
    else start(next)
  }
  const isUnanswered =
    runs.length === 0 && turns.length > 0 && turns.at(-1)?.role !== 'assistant' && toolCall === null
  const hasFailed = !isRunning && runs.some(({ error }) => error !== null)
  const draft = makeBody(settings, turns.length > 0 ? turns : [{ role: 'user', text: text || 'Hello!' }])
  return (
    <>
      <PageHeader
        title={t('Playground')}
        description={t('Calls made here are charged like any other. Their key expires after an hour.')}
        actions={
          <Button
            disabled={turns.length === 0}
            onClick={() => {
              clear()
              form.set({ turns: [], id: '' })
            }}
          >
            {t('New conversation')}
          </Button>
        }
      />
      <div className="grid items-start gap-5 lg:grid-cols-[20rem_minmax(0,1fr)]">
        <div className="flex min-w-0 flex-col gap-5">
          <SettingsPanel settings={settings} models={models} onChange={form.set} />
          <History
            owner={owner}
            present={id}
            onOpen={(conversation) => {
              clear()
              form.set({ turns: conversation.turns, id: conversation.id })
              change({ model: conversation.model }, { isReplaced: true })
            }}
          />
        </div>
        <div className="flex min-w-0 flex-col gap-5">
          <Panel>
            <ol>
              {turns.map((turn, number) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: turns have no id, and a conversation only appends them: a turn never changes its place.
                <TurnView key={number} turn={turn} accountId={accountId} />
              ))}
            </ol>
            {runs.length > 0 && <Runs runs={runs} accountId={accountId} />}
            {(isUnanswered || hasFailed) && (
              <p className="flex flex-wrap items-center gap-3 border-line border-b px-4 py-3">
                {isUnanswered && <span>{t('The page was reloaded before an answer came.')}</span>}
                <Button onClick={() => start(turns)}>{t('Send again')}</Button>
              </p>
            )}
            <Composer
              text={text}
              onText={(typed) => form.set({ text: typed })}
              isRunning={isRunning}
              isBlocked={readTools(settings.tools).problem !== null}
              canReadImages={chosen.capabilities.vision}
              toolCall={isRunning ? null : toolCall}
              onSend={onSend}
              onStop={stop}
            />
          </Panel>
          <section aria-label={t('The same call as code')}>
            <h2 className="pb-2 font-medium text-base">{t('The same call as code')}</h2>
            <SnippetTabs snippets={printCode(location.origin, CHAT_PATH, draft)} />
          </section>
        </div>
      </div>
    </>
  )
}
