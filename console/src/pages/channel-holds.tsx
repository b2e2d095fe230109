/** Pauses, drains and resumes a channel. The question says what that does, and is as strong as that is dangerous. */

import type { ReactNode } from 'react'
import { readTyped } from '../../../src/core/confirmation.ts'
import { type AnswerOf, request } from '../api/client.ts'
import { useGet } from '../api/read.ts'
import { printNumber } from '../format.ts'
import { t } from '../i18n.ts'
import { Action, type Question } from '../ui/dialog.tsx'
import { Badge } from '../ui/states.tsx'

type Channel = AnswerOf<'listChannels'>['data'][number]

export function ChannelStatus({ state, breaker }: Pick<Channel, 'state' | 'breaker'>) {
  return (
    <>
      {state === 'paused' && <Badge tone="warn">{t('Paused')}</Badge>}
      {state === 'draining' && <Badge tone="warn">{t('Draining')}</Badge>}
      {(breaker === 'open' || breaker === 'half-open') && (
        <Badge tone="bad">{breaker === 'open' ? t('Open circuit') : t('Half-open circuit')}</Badge>
      )}
    </>
  )
}

interface HoldQuestionProps {
  readonly id: string
  readonly isDrain?: boolean
  ask(question: Question | null): ReactNode
}

/** Asks about a hold; who would leave models without a channel types the name of the channel. */
function HoldQuestion({ id, isDrain = false, ask }: HoldQuestionProps) {
  const { data, error } = useGet('showChannelImpact', { id }, { refetchOnMount: 'always' })
  if (data === undefined && !error) return ask(null)
  const orphans = data?.orphaned_models ?? []
  const names = { name: id }
  return ask({
    title: isDrain ? t('Drain {name}', names) : t('Pause {name}', names),
    description: isDrain
      ? t(
          'It takes no new calls. Calls and tasks in progress continue; you can remove the channel when they have ended.',
        )
      : t('It takes no new calls until you resume it. Calls and tasks in progress continue.'),
    effects: [
      data === undefined
        ? t('What this does cannot be told: {why}', { why: error?.message ?? '' })
        : orphans.length > 0
          ? t('These models lose their last channel, so their calls are refused: {models}', {
              models: orphans.join(', '),
            })
          : t('Every model of it has another channel, which takes its calls.'),
      data?.calls_last_hour == null
        ? t('The number of its calls in the last hour is not known.')
        : t('Calls in the last hour: {count}', { count: printNumber(data.calls_last_hour) }),
    ],
    ...((data === undefined || orphans.length > 0) && {
      name: readTyped(isDrain ? 'drainChannel' : 'pauseChannel', { id }),
    }),
    submit: isDrain ? t('Drain') : t('Pause'),
  })
}

export function ChannelHolds({ id, state }: Pick<Channel, 'id' | 'state'>) {
  const quiet = {
    kind: 'quiet',
    changes: ['/channels', '/installation/health'],
    done: t('Channel changed'),
  } as const
  if (state !== 'active')
    return (
      <Action {...quiet} run={() => request('resumeChannel', { id })}>
        {t('Resume')}
      </Action>
    )
  return (
    <>
      <Action
        {...quiet}
        confirmWith={(ask) => <HoldQuestion id={id} ask={ask} />}
        run={() => request('pauseChannel', { id })}
      >
        {t('Pause')}
      </Action>
      <Action
        {...quiet}
        confirmWith={(ask) => <HoldQuestion isDrain id={id} ask={ask} />}
        run={() => request('drainChannel', { id })}
      >
        {t('Drain')}
      </Action>
    </>
  )
}
