/** What was said in the playground: messages, answers as they arrive, and what they cost. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useMemo } from 'react'
import { printCredits } from '../../../../schemas/money.ts'
import { catalogQuery } from '../../api/catalog.ts'
import { ApiError } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { printNumber } from '../../format.ts'
import { t } from '../../i18n.ts'
import { MarkdownText } from '../../ui/markdown.tsx'
import { Badge, ErrorState, Skeleton } from '../../ui/states.tsx'
import { Money } from '../../ui/text.tsx'
import { computeCostAfter, measurePrompt, readPrice } from './cost.ts'
import type { AnswerTurn, Turn } from './request.ts'
import type { Run } from './use-run.ts'

const BOOKED_POLL_MS = 500

const explainEnding = (ending: AnswerTurn['ending']): string | null =>
  ending === 'broken'
    ? t('The answer broke off before its end.')
    : ending === 'stopped'
      ? t('You stopped the answer.')
      : null

interface ChargeProps {
  readonly accountId: string
  readonly requestId: string
}

/** What was booked for a call, as soon as it is. */
function Charge({ accountId, requestId }: ChargeProps) {
  const calls = useGet(
    'listCalls',
    { account_id: accountId, ref: requestId },
    {
      refetchInterval: ({ state: { data } }) => ((data?.data.length ?? 0) === 0 ? BOOKED_POLL_MS : false),
    },
  )
  const call = calls.data?.data[0]
  return (
    <p className="flex flex-wrap items-center gap-x-4 gap-y-1 pt-2 text-sm">
      {call === undefined ? (
        <span className="text-quiet">{t('Booking the charge…')}</span>
      ) : (
        <span>
          <strong>
            <Money amount={call.cost} />
          </strong>{' '}
          {t('credits charged')}
        </span>
      )}
      <ShowCall accountId={accountId} requestId={requestId} />
    </p>
  )
}

const ShowCall = ({ accountId, requestId }: ChargeProps) => (
  <Link
    to="/calls"
    search={{ account: accountId, ref: requestId, period: 'all' }}
    className="text-accent hover:underline"
  >
    {t('Show the call')}
  </Link>
)

/** The text of an answer, with its reasoning and tool calls. */
function AnswerText({
  text,
  reasoning,
  toolCalls = [],
}: Pick<AnswerTurn, 'text' | 'reasoning' | 'toolCalls'>) {
  return (
    <>
      {reasoning !== undefined && reasoning !== '' && (
        <details className="mb-2 text-quiet text-sm">
          <summary>{t('Reasoning')}</summary>
          <p className="whitespace-pre-wrap">{reasoning}</p>
        </details>
      )}
      <MarkdownText text={text} />
      {toolCalls.map(({ id, name, arguments: given }) => (
        <pre key={id} className="mt-2 overflow-x-auto rounded-md bg-raised p-2 font-mono text-xs">
          {name}({given})
        </pre>
      ))}
    </>
  )
}

const Side = ({ name, children }: { readonly name: string; readonly children: ReactNode }) => (
  <section aria-label={name} className="min-w-0 px-4 py-3">
    <p className="pb-1 font-medium text-quiet text-xs">{name}</p>
    {children}
  </section>
)

/** One answer, or two side by side. */
const Sides = ({ isTwo, children }: { readonly isTwo: boolean; readonly children: ReactNode }) => (
  <div
    className={`border-line border-b ${isTwo ? 'grid divide-line max-md:divide-y md:grid-cols-2 md:divide-x' : ''}`}
  >
    {children}
  </div>
)

function Answered({ turn, accountId }: { readonly turn: AnswerTurn; readonly accountId: string }) {
  const ending = explainEnding(turn.ending)
  return (
    <Side name={turn.model ?? t('Model')}>
      <AnswerText {...turn} />
      {ending !== null && (
        <p role="alert" className="mt-2 rounded-md bg-warn-wash px-3 py-2 text-warn">
          {ending} {turn.error}
        </p>
      )}
      {turn.requestId != null && <Charge accountId={accountId} requestId={turn.requestId} />}
    </Side>
  )
}

export function TurnView({ turn, accountId }: { readonly turn: Turn; readonly accountId: string }) {
  if (turn.role === 'assistant')
    return (
      <li>
        <Sides isTwo={turn.compared !== undefined}>
          <Answered turn={turn} accountId={accountId} />
          {turn.compared && <Answered turn={turn.compared} accountId={accountId} />}
        </Sides>
      </li>
    )
  return (
    <li className="border-line border-b px-4 py-3">
      <p className="pb-1 font-medium text-quiet text-xs">{turn.role === 'user' ? t('You') : t('Tool')}</p>
      <p className="whitespace-pre-wrap break-words">{turn.text}</p>
      {turn.pictures && turn.pictures.length > 0 && (
        <p className="mt-1 text-quiet text-sm">{turn.pictures.map(({ name }) => name).join(', ')}</p>
      )}
    </li>
  )
}

/** What the call costs so far. */
function CostLine({ run, accountId }: { readonly run: Run; readonly accountId: string }) {
  const { data: models = [] } = useQuery(catalogQuery)
  const pricing = models.find(({ id }) => id === run.model)?.pricing
  const price = useMemo(() => (pricing ? readPrice(pricing) : null), [pricing])
  const prompt = useMemo(() => measurePrompt(run.body), [run.body])
  const cost = price === null ? null : computeCostAfter(run.error, price, prompt, run.answer, Date.now())
  return (
    <p className="flex flex-wrap items-center gap-x-4 gap-y-1 pt-2 text-sm">
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
      {run.error !== null && run.requestId !== null && (
        <ShowCall accountId={accountId} requestId={run.requestId} />
      )}
    </p>
  )
}

interface RunsProps {
  /** One, or two to compare. */
  readonly runs: readonly Run[]
  readonly accountId: string
}

/** The answers that are arriving, and those that failed. */
export const Runs = ({ runs, accountId }: RunsProps) => (
  <Sides isTwo={runs.length > 1}>
    {runs.map((run) => (
      <Side key={run.id} name={run.model}>
        <div aria-live="polite" aria-busy={run.isRunning}>
          <AnswerText {...run.answer} />
          {run.isRunning && run.answer.characters === 0 && <Skeleton rows={2} />}
        </div>
        <ErrorState error={run.error} />
        <CostLine run={run} accountId={accountId} />
      </Side>
    ))}
  </Sides>
)
